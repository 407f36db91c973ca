// TextFile: the bytes of a file, decompressed if it is a gzip file. RowReader: a file as rows of fields.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fedge::learn {

class TextFile {
 public:
  // kInvalid if it is no regular file: a pipe without a writer must not stop the program.
  static Result<TextFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // Reads the next bytes, at least one unless the file ends; returns their number. kCorrupt: a gzip file that
  // is damaged or truncated.
  Result<std::size_t> read(std::span<char> out);

 private:
  struct Close {
    void operator()(void* file) const;
  };
  TextFile(std::filesystem::path path, void* file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  std::unique_ptr<void, Close> file_;
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  // Reads the next row; false after the last one.
  virtual Result<bool> next() = 0;
  // The fields of the row. Valid until the next call of next().
  virtual std::span<const std::string_view> fields() const = 0;
  // "FILE:LINE", for messages about the row.
  virtual std::string place() const = 0;
};

}  // namespace fedge::learn
