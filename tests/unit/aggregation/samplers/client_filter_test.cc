// The condition on labels of a run file (sampling.where).
#include "aggregation/samplers/client_filter.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace fedge::aggregation {
namespace {

bool fits(const std::string& condition, const std::vector<std::string>& labels) {
  const auto filter = ClientFilter::parse(condition);
  REQUIRE_MESSAGE(filter, condition << ": " << filter.error().message);
  return filter->matches(labels);
}

}  // namespace

TEST_CASE("client filter: no condition is for every client") {
  CHECK(ClientFilter().matches_all());
  CHECK(fits("", {}));
  CHECK(fits("", {"icu"}));
}

TEST_CASE("client filter: a client with several labels has each of them") {
  CHECK(fits("label == 'ward-3'", {"icu", "ward-3"}));
  CHECK_FALSE(fits("label == 'ward-3'", {"icu", "ward-30"}));
  CHECK_FALSE(fits("label == 'ward-3'", {}));
  CHECK_FALSE(fits("label != 'ward-3'", {"icu", "ward-3"}));
  CHECK(fits("label != 'ward-3'", {}));
  CHECK(fits("label == 'site=berlin:2'", {"site=berlin:2"}));
}

TEST_CASE("client filter: not binds more tightly than and, and that more tightly than or") {
  // All combinations of three labels, against the expressions in C++.
  for (int set = 0; set < 8; ++set) {
    CAPTURE(set);
    std::vector<std::string> labels;
    const bool a = (set & 1) != 0;
    const bool b = (set & 2) != 0;
    const bool c = (set & 4) != 0;
    for (const auto& [has, label] : {std::pair(a, "a"), std::pair(b, "b"), std::pair(c, "c")})
      if (has) labels.emplace_back(label);
    CHECK(fits("label == 'a' or label == 'b' and label == 'c'", labels) == (a || (b && c)));
    CHECK(fits("(label == 'a' or label == 'b') and label == 'c'", labels) == ((a || b) && c));
    CHECK(fits("not label == 'a' and label == 'b'", labels) == (!a && b));
    CHECK(fits("not (label == 'a' and label != 'b')", labels) == !(a && !b));
    CHECK(fits("not not label=='a'", labels) == a);
    CHECK(fits("label=='a'and(label=='b'or\nnot label=='c')", labels) == (a && (b || !c)));
  }
}

TEST_CASE("client filter: an error says what is expected, and where") {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"label = 'a'", "expected == or != instead of = at character 7"},
      {"label == a", "expected a label in single quotes instead of a at character 10"},
      {"label == 'a", "expected a label in single quotes instead of 'a at character 10"},
      {"label == ''", "expected a label in single quotes instead of '' at character 10"},
      {"label == \"a\"", "expected a label in single quotes instead of \" at character 10"},
      {"name == 'a'", "expected label, not or '(' instead of name at character 1"},
      {"label == 'a' label == 'b'", "expected 'and', 'or' or the end instead of label at character 14"},
      {"(label == 'a'", "expected ')' instead of the end at character 14"},
      {"label == 'a')", "expected 'and', 'or' or the end instead of ) at character 13"},
      {"label == 'a' and", "expected label, not or '(' instead of the end at character 17"},
      {"and label == 'a'", "expected label, not or '(' instead of and at character 1"},
      {" ", "expected label, not or '(' instead of the end at character 2"},
  };
  for (const auto& [text, message] : wrong) {
    const auto filter = ClientFilter::parse(text);
    CAPTURE(text);
    REQUIRE_FALSE(filter);
    CHECK_MESSAGE(filter.error().message.starts_with(message), filter.error().message);
  }
}

TEST_CASE("client filter: neither nesting nor length exhausts the stack") {
  CHECK(ClientFilter::parse(std::string(60, '(') + "label == 'a'" + std::string(60, ')')));
  CHECK_FALSE(ClientFilter::parse(std::string(2000, '(') + "label == 'a'" + std::string(2000, ')')));
  std::string nots;
  for (int i = 0; i < 1000; ++i) nots += "not ";
  CHECK_FALSE(ClientFilter::parse(nots + "label == 'a'"));
  CHECK_FALSE(ClientFilter::parse("label == '" + std::string(5000, 'a') + "'"));
  std::string many = "label == 'x'";
  while (many.size() < 4000) many += " or label == 'y'";
  CHECK(fits(many, {"y"}));
  CHECK_FALSE(fits(many, {"z"}));
}

}  // namespace fedge::aggregation
