// A table as one NumPy file (.npy) per column, to which rows are appended during a run. numpy.load() reads a
// file as a whole or memory-maps it, also while the run continues. One thread. Memory: the rows since the
// last commit().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/result.h"

namespace fedge::sim {

class ColumnFiles {
 public:
  enum class Type { kUnsigned32, kUnsigned64, kFloat64 };
  struct Column {
    std::string name;  // of the file, without extension
    Type type;
  };
  // A value of a column: an integer of an unsigned type, or a float.
  using Value = std::variant<std::uint64_t, double>;

  // Creates the directory with empty columns; replaces what is there.
  static Result<ColumnFiles> create(const std::filesystem::path& directory, std::vector<Column> columns);
  // Opens the columns of an earlier process and drops the rows behind those whose first column, which ascends
  // and is an integer, is at most `last`. kCorrupt: a column is missing, damaged or shorter than the others.
  static Result<ColumnFiles> open(const std::filesystem::path& directory, std::vector<Column> columns,
                                  std::uint64_t last);

  // Reads a column. kCorrupt: the file is damaged or has another type.
  static Result<std::vector<double>> read(const std::filesystem::path& directory, const Column& column);

  // Adds a row, with one value of the right kind for each column.
  void add(std::span<const Value> row);
  // Writes the rows that were added. Afterwards the files contain them.
  Result<void> commit();
  std::uint64_t rows() const { return rows_; }  // in the files

 private:
  ColumnFiles(std::filesystem::path directory, std::vector<Column> columns)
      : directory_(std::move(directory)), columns_(std::move(columns)), waiting_(columns_.size()) {}
  std::filesystem::path path_of(const Column& column) const { return directory_ / (column.name + ".npy"); }
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  // Opens the columns' files in this mode of fopen().
  Result<void> open_files(const char* mode);
  Result<void> write_column(std::size_t column);

  std::filesystem::path directory_;
  std::vector<Column> columns_;
  std::vector<std::unique_ptr<std::FILE, Close>> files_;  // by column
  std::vector<std::string> waiting_;                      // bytes of each column
  std::uint64_t rows_ = 0;
  std::uint64_t waiting_rows_ = 0;
};

}  // namespace fedge::sim
