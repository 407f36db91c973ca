// CsvReader: reads a CSV file (RFC 4180) row by row, also a gzip file of one. Fields may be quoted, and
// quoted fields may contain separators, line ends and doubled quotes. Line ends are LF or CR LF; empty lines
// are skipped; a UTF-8 byte order mark is ignored. Memory: the longest row, at most kMaxRowBytes. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "learn/tables/text_file.h"

namespace fedge::learn {

class CsvReader final : public RowReader {
 public:
  static constexpr std::size_t kMaxRowBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxFields = 65'536;

  // Messages name the file by its path. kNotFound if it does not exist.
  static Result<CsvReader> open(const std::filesystem::path& path, char separator = ',');

  // Reads the next row; false after the last one. kInvalid names the line: a quote without its end, something
  // after a closing quote, too long a row or too many fields. kCorrupt: a gzip file that is damaged or
  // truncated.
  Result<bool> next() override;
  // Without their quotes.
  std::span<const std::string_view> fields() const override { return fields_; }
  // The line on which the row begins, counted from 1.
  std::size_t line() const { return line_; }
  std::string place() const override;

 private:
  CsvReader(TextFile source, char separator);

  // Length in bytes of the row at begin_, without its line end; reads more of the file as needed.
  struct Row {
    std::size_t size = 0;
    std::size_t with_end = 0;
    bool quoted = false;  // some field is quoted
  };
  Result<Row> find_row();
  Result<void> read_more();
  Result<void> split_plain(char* row, std::size_t size);
  Result<void> split_quoted(char* row, std::size_t size);
  Error wrong(const std::string& what) const;

  TextFile source_;
  char separator_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of the next row in the buffer
  std::size_t end_ = 0;    // of what has been read
  bool at_end_ = false;    // of the file
  std::vector<std::string_view> fields_;
  std::size_t line_ = 0;
  std::size_t next_line_ = 1;
};

}  // namespace fedge::learn
