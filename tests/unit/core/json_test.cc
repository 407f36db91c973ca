#include "core/detail/json.h"

#include <doctest/doctest.h>

using namespace fedge;

TEST_CASE("json: a text nested deeper than is read is discarded before it is built") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK_FALSE(parse_json(nested(kMaxJsonLevels)).is_discarded());
  CHECK(parse_json(nested(kMaxJsonLevels + 1)).is_discarded());
  CHECK(parse_json(nested(1'000'000)).is_discarded());
  CHECK(parse_json(std::string(1'000'000, '[')).is_discarded());
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK(parse_json(objects + "1" + std::string(100'000, '}')).is_discarded());
}

TEST_CASE(
    "json: a text with a member twice is discarded where that is asked, at every level and in every "
    "spelling") {
  const auto is_read = [](const char* text) {
    return !parse_json_without_duplicates(text, 4).is_discarded();
  };
  CHECK(is_read(R"({"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]})"));
  CHECK(is_read(R"({"a":1,"A":2," a":3,"":4})"));
  for (const char* text : {R"({"a":1,"a":1})", R"({"a":1,"b":{"c":1,"c":2}})", R"({"a":[{"b":1,"b":2}]})",
                           R"({"a":{"b":1},"a":2})", R"({"a":1,"\u0061":2})", R"({"":1,"":2})"})
    CHECK_FALSE(is_read(text));
  CHECK(parse_json(R"({"a":1,"a":2})")["a"] == 2);
  CHECK(is_read("[[[[1]]]]"));
  CHECK_FALSE(is_read("[[[[[1]]]]]"));
  CHECK_FALSE(is_read("{\"a\":[[[[1]]]],\"a\":1}"));
  for (const char* text : {"", "{", "{\"a\":1}}", "\"\xff\"", "1e999", "{\"a\"}"}) CHECK_FALSE(is_read(text));
}
