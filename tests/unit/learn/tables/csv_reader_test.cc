#include "learn/tables/csv_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/support/text.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using test::TemporaryDirectory;
using CsvRows = std::vector<std::vector<std::string>>;

struct Read {
  CsvRows rows;
  std::vector<std::size_t> lines;
  std::string error;  // empty if the file was read to its end
};

Read read_all(const std::filesystem::path& path, char separator = ',') {
  Read read;
  auto reader = CsvReader::open(path, separator);
  if (!reader) return {.error = reader.error().message};
  while (true) {
    const auto more = reader->next();
    if (!more) read.error = more.error().message;
    if (!more || !*more) return read;
    read.rows.emplace_back();
    read.lines.push_back(reader->line());
    for (const std::string_view field : reader->fields()) read.rows.back().emplace_back(field);
  }
}

Read read_text(const std::string& text, char separator = ',') {
  const TemporaryDirectory directory;
  return read_all(test::write_text(directory.path() / "t.csv", text), separator);
}

// Without the directory's name, which is random.
std::string csv_error(const std::string& text) {
  const std::string error = read_text(text).error;
  const std::size_t name = error.find("t.csv");
  return name == std::string::npos ? error : error.substr(name);
}

}  // namespace

TEST_CASE("csv: rows end with LF or CR LF, the last one also with the file, and empty lines are skipped") {
  CHECK(read_text("a,b\n1,2\n").rows == CsvRows{{"a", "b"}, {"1", "2"}});
  CHECK(read_text("a,b\r\n1,2\r\n").rows == CsvRows{{"a", "b"}, {"1", "2"}});
  CHECK(read_text("a,b\n1,2").rows == CsvRows{{"a", "b"}, {"1", "2"}});
  CHECK(read_text("a,b\r\n1,2\r").rows == CsvRows{{"a", "b"}, {"1", "2"}});
  CHECK(read_text("\n\na\n\n\r\nb\n\n").rows == CsvRows{{"a"}, {"b"}});
  CHECK(read_text("").rows.empty());
  CHECK(read_text(",\n,,").rows == CsvRows{{"", ""}, {"", "", ""}});
  CHECK(read_text("\xEF\xBB\xBF"
                  "a,b\n")
            .rows == CsvRows{{"a", "b"}});
}

TEST_CASE("csv: quoted fields may contain separators, line ends and doubled quotes") {
  const Read read = read_text("\"a,b\",\"c\n\"\"d\"\"\",e\r\n\"\",\"\"\"\"\nf,g,h\n");
  CHECK(read.error.empty());
  CHECK(read.rows == CsvRows{{"a,b", "c\n\"d\"", "e"}, {"", "\""}, {"f", "g", "h"}});
  CHECK(read.lines == std::vector<std::size_t>{1, 3, 4});
  CHECK(read_text("1;\"2;3\"\n", ';').rows == CsvRows{{"1", "2;3"}});
}

TEST_CASE("csv: an error names the file and the line on which the row begins") {
  CHECK(csv_error("a,b\n1,\"2\n3,4\n") == "t.csv:2: a quote that begins in this row has no end");
  CHECK(csv_error("a\n\"b\"c\n") ==
        "t.csv:2: field 1: text follows the closing quote; double a quote that belongs to the field");
  CHECK(csv_error("a\nx,b\"c\"\n") == "t.csv:2: field 2: contains a quote but does not begin with one");
  CHECK(read_text("a\n1\n\"2").rows == CsvRows{{"a"}, {"1"}});
  const std::string wide(CsvReader::kMaxFields, ',');  // one field more than separators
  CHECK(csv_error(wide) == "t.csv:1: the row has more than 65536 fields");
  CHECK(csv_error("\"\"" + wide) == "t.csv:1: the row has more than 65536 fields");
  CHECK(csv_error(wide.substr(1)).empty());
  const std::string nowhere = read_all("/nowhere/t.csv").error;
  CHECK(nowhere == "cannot open /nowhere/t.csv: No such file or directory");
  CHECK(read_all("/").error == "/ is not a regular file");
}

TEST_CASE("csv: a row longer than the bound is an error, and not all of it is kept in memory") {
  std::string text = "a\n" + std::string(CsvReader::kMaxRowBytes + 10, 'x') + "\n";
  CHECK(csv_error(text) ==
        "t.csv:2: the row is longer than 16 MiB; is a quote missing, or is this not a CSV file?");
  text = "a\n\"" + std::string(CsvReader::kMaxRowBytes + 10, '\n') + "\"\n";
  CHECK(csv_error(text).starts_with("t.csv:2: the row is longer than 16 MiB"));
  // CsvRows that are longer than the buffer at first are whole.
  const std::string field(3'000'000, 'y');
  CHECK(read_text("a,b\n" + field + ",1\n2,3\n").rows == CsvRows{{"a", "b"}, {field, "1"}, {"2", "3"}});
}

TEST_CASE("csv: gzip files are decompressed, and a damaged or truncated one is an error") {
  std::string text = "name,value\n";
  for (int i = 0; i < 50'000; ++i)
    text += "n" + std::to_string(i) + "," + std::to_string(i * 7 % 1000) + "\n";
  const TemporaryDirectory directory;
  const test::Bytes packed = test::gzip(test::Bytes(text.begin(), text.end()));
  directory.write("t.csv.gz", packed);
  const Read read = read_all(directory.path() / "t.csv.gz");
  CHECK(read.error.empty());
  CHECK(read.rows == read_text(text).rows);
  CHECK(read.rows.size() == 50'001);
  for (const std::size_t size : {packed.size() - 1, packed.size() / 2, std::size_t{30}}) {
    directory.write("cut.csv.gz", test::Bytes(packed.begin(), packed.begin() + static_cast<long>(size)));
    CHECK(fedge::test::contains(read_all(directory.path() / "cut.csv.gz").error, "damaged or truncated"));
  }
  test::Bytes damaged = packed;
  damaged[packed.size() / 2] ^= 1;
  directory.write("damaged.csv.gz", damaged);
  CHECK(fedge::test::contains(read_all(directory.path() / "damaged.csv.gz").error, "damaged or truncated"));
}

TEST_CASE("csv: what another program would write is read back, whatever the fields contain") {
  constexpr std::string_view kAlphabet = "ab \"\",,\n\n\r;1.5-\t";
  Rng rng(17);
  for (int round = 0; round < 400; ++round) {
    CsvRows rows(1 + rng.below(6));
    std::string text;
    for (auto& row : rows) {
      row.resize(2 + rng.below(4));
      for (std::size_t i = 0; i < row.size(); ++i) {
        for (std::size_t n = rng.below(9); n > 0; --n) row[i] += kAlphabet[rng.below(kAlphabet.size())];
        const bool quoted = row[i].find_first_of("\",\n\r") != std::string::npos || rng.below(4) == 0;
        std::string field = row[i];
        for (std::size_t at = field.find('"'); at != std::string::npos; at = field.find('"', at + 2))
          field.insert(at, 1, '"');
        text += (i > 0 ? "," : "") + (quoted ? "\"" + field + "\"" : field);
      }
      text += rng.below(2) == 0 ? "\n" : "\r\n";
    }
    const Read read = read_text(text);
    REQUIRE_MESSAGE(read.error.empty(), read.error);
    REQUIRE_MESSAGE(read.rows == rows, text);
  }
}

}  // namespace fedge::learn
