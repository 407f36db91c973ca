// JsonLines: reads a file of JSON lines (jsonlines.org), also a gzip file of one: each line is an object, and
// its fields are the columns of a row. Memory: the longest line, at most kMaxLineBytes, and its values. Not
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

class JsonLines final : public RowReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

  // A row has these columns, in this order. Messages name the file by its path.
  static Result<JsonLines> open(const std::filesystem::path& path, std::vector<std::string> columns);

  // Empty lines are skipped. kInvalid names the line, and the column: no object, a value that is an object or
  // an array, too long a line. kCorrupt: a gzip file that is damaged or truncated.
  Result<bool> next() override;
  // Strings without their quotes; numbers as they are shortest written; true and false; nothing for null and
  // for a column that the object lacks.
  std::span<const std::string_view> fields() const override { return fields_; }
  std::string place() const override;

 private:
  JsonLines(TextFile file, std::vector<std::string> columns)
      : file_(std::move(file)), columns_(std::move(columns)) {}
  // The next line, without its end; false after the last one.
  Result<bool> read_line();
  Result<void> split();

  TextFile file_;
  std::vector<std::string> columns_;
  std::string buffer_;     // what has been read of the file
  std::size_t begin_ = 0;  // of the next line in the buffer
  std::string_view row_;
  std::vector<std::string> values_;
  std::vector<std::string_view> fields_;
  std::size_t line_ = 0;
};

}  // namespace fedge::learn
