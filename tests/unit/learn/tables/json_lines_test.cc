// JSON lines as rows, and as the samples that the same table in CSV gives.
#include "learn/tables/json_lines.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "learn/data/kinds.h"
#include "tests/support/text.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using fedge::test::contains;
using test::data_spec;
using test::TemporaryDirectory;
using test::write_text;

using JsonRows = std::vector<std::vector<std::string>>;

Result<JsonRows> rows_of(const std::string& text, bool packed = false) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "t.jsonl";
  if (packed)
    directory.write("t.jsonl", test::gzip({text.begin(), text.end()}));
  else
    write_text(path, text);
  FEDGE_TRY(reader, JsonLines::open(path, {"a", "b"}));
  JsonRows rows;
  while (true) {
    FEDGE_TRY(more, reader.next());
    if (!more) return rows;
    rows.emplace_back(reader.fields().begin(), reader.fields().end());
    rows.back().push_back(reader.place().substr(reader.place().rfind(':') + 1));
  }
}

std::string json_error(const std::string& text) {
  const auto rows = rows_of(text);
  return rows ? "read" : rows.error().message;
}

const std::string kKeys =
    "numeric = [\"x\"]\nmissing_flags = true\ncategorical = [{ column = \"kind\", values = [\"p\", "
    "\"q\\\"\"] }]\n"
    "target = \"y\"\nclasses = [\"false\", \"true\"]\nsplit = { test = 0 }\n";

Result<Dataset> table(const std::string& dataset, const std::string& file, const std::string& text) {
  const TemporaryDirectory directory;
  auto spec = data_spec("dataset = \"" + dataset + "\"\n" + kKeys);
  REQUIRE_MESSAGE(spec, spec.error().message);
  write_text(directory.path() / file, text);
  spec->directory = directory.path().string();
  const auto source = source_of(*spec);
  REQUIRE(source);
  return (*source)->load(*spec, Split::kTrain);
}

}  // namespace

TEST_CASE("json lines: every kind of value is a field, in the order of the columns") {
  const std::string text =
      "{\"b\": \"two\", \"a\": 1.50}\r\n\n   \n{\"a\": true, \"other\": {\"deep\": [1, {}]}}\n"
      "{\"a\": null, \"b\": \"line\\nend, \\\"quoted\\\" \\u00e4\"}\n{\"a\": -3, \"b\": 1e300}";
  const JsonRows expected = {{"1.5", "two", "1"},
                             {"true", "", "4"},
                             {"", "line\nend, \"quoted\" \xc3\xa4", "5"},
                             {"-3", "1e+300", "6"}};
  for (const bool packed : {false, true}) {
    const auto rows = rows_of(text, packed);
    REQUIRE_MESSAGE(rows, rows.error().message);
    CHECK(*rows == expected);
  }
  CHECK(rows_of("")->empty());
  CHECK(rows_of("\n\n")->empty());
}

TEST_CASE("json lines: an error names the line and the column") {
  CHECK(contains(json_error("{\"a\": 1}\n[1, 2]\n"), "t.jsonl:2: the line is not a JSON object"));
  CHECK(contains(json_error("{\"a\": 1}\n\n{\"a\": }\n"), "t.jsonl:3: the line is not a JSON object"));
  CHECK(contains(json_error("{\"a\": [1]}\n"), "t.jsonl:1: column \"a\" is not a string, a number"));
  CHECK(contains(json_error("{\"a\": " + std::string(100'000, '[')),
                 "t.jsonl:1: the line is not a JSON object"));
  CHECK(contains(json_error("{\"a\": \"" + std::string(JsonLines::kMaxLineBytes + 1, 'x') + "\"}"),
                 "t.jsonl:1: the line is longer than 16 MiB"));
  CHECK(contains(json_error(std::string("\x1f\x8b\x08\x00 not a gzip file", 20)), "damaged or truncated"));
}

TEST_CASE("json lines: a table gives the samples that it gives as CSV") {
  const auto lines =
      table("jsonl", "t.jsonl",
            "{\"y\": true, \"x\": 2.5, \"kind\": \"q\\\"\"}\n{\"x\": null, \"kind\": \"p\", \"y\": false}\n"
            "{\"x\": \"-7\", \"y\": \"true\"}\n");
  const auto rows = table("csv", "t.csv", "x,kind,y\n2.5,\"q\"\"\",true\n,p,false\n-7,,true\n");
  REQUIRE_MESSAGE(lines, lines.error().message);
  REQUIRE_MESSAGE(rows, rows.error().message);
  CHECK(lines->labels == rows->labels);
  REQUIRE(lines->floats.size() == rows->floats.size());
  for (std::size_t i = 0; i < rows->floats.size(); ++i)
    CHECK(lines->floats.data()[i] == rows->floats.data()[i]);
  const auto wrong = table("jsonl", "t.jsonl", "{\"y\": true, \"x\": \"many\"}\n");
  REQUIRE_FALSE(wrong);
  CHECK(contains(wrong.error().message, "t.jsonl:1: column \"x\": \"many\" is not a finite number"));
  CHECK(contains(table("jsonl", "t.jsonl", "{\"x\": 1}\n").error().message, "is not one of data.classes"));
}

}  // namespace fedge::learn
