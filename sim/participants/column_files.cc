#include "sim/participants/column_files.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "core/platform/files.h"

namespace fedge::sim {
namespace {

// The length of the header, in which the number of rows is padded with blanks, so that it can grow.
constexpr std::size_t kHeaderBytes = 128;
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 40;

std::size_t size_of(ColumnFiles::Type type) { return type == ColumnFiles::Type::kUnsigned32 ? 4 : 8; }

const char* description(ColumnFiles::Type type) {
  switch (type) {
    case ColumnFiles::Type::kUnsigned32:
      return "<u4";
    case ColumnFiles::Type::kUnsigned64:
      return "<u8";
    default:
      return "<f8";
  }
}

// Version 1.0 of the format: magic, version, length of the text, and the text, which ends with a line feed.
std::string header(ColumnFiles::Type type, std::uint64_t rows) {
  std::string text = "{'descr': '" + std::string(description(type)) +
                     "', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ",), }";
  constexpr std::size_t kBefore = 10;
  text.resize(kHeaderBytes - kBefore - 1, ' ');
  text += '\n';
  const auto length = static_cast<std::uint16_t>(text.size());
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  out += static_cast<char>(length & 0xff);
  out += static_cast<char>(length >> 8);
  return out + text;
}

void append_integer(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

std::uint64_t integer_in(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

Error damaged(const std::filesystem::path& path) {
  return {ErrorCode::kCorrupt, path.string() + " is damaged, or is not a column of a run's participants"};
}

// The number of rows that the file's header gives, all of which are in the file.
Result<std::uint64_t> rows_in(const ReadOnlyFile& file, ColumnFiles::Type type) {
  std::string text(kHeaderBytes, ' ');
  if (file.size() < kHeaderBytes || !file.read(0, std::as_writable_bytes(std::span(text))))
    return damaged(file.path());
  const std::size_t at = text.find("'shape': (");
  if (at == std::string::npos) return damaged(file.path());
  std::uint64_t rows = 0;
  for (std::size_t i = at + 10; i < text.size() && text[i] >= '0' && text[i] <= '9' && rows < kMostRows; ++i)
    rows = 10 * rows + static_cast<std::uint64_t>(text[i] - '0');
  const bool whole = text == header(type, rows) && file.size() >= kHeaderBytes + rows * size_of(type);
  return whole ? Result<std::uint64_t>(rows) : damaged(file.path());
}

// The number of the first rows whose values are at most `last`.
Result<std::uint64_t> rows_until(const ReadOnlyFile& file, ColumnFiles::Type type, std::uint64_t rows,
                                 std::uint64_t last) {
  std::uint64_t low = 0;
  std::uint64_t high = rows;
  std::array<std::byte, 8> value{};
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto bytes = std::span(value).first(size_of(type));
    FEDGE_TRY_VOID(file.read(kHeaderBytes + middle * bytes.size(), bytes));
    if (integer_in(bytes) <= last)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

Result<ColumnFiles> ColumnFiles::create(const std::filesystem::path& directory, std::vector<Column> columns) {
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (error) return system_error("cannot remove", directory, error.value());
  FEDGE_TRY_VOID(make_directory(directory));
  ColumnFiles files(directory, std::move(columns));
  FEDGE_TRY_VOID(files.open_files("wbe"));
  for (std::size_t i = 0; i < files.columns_.size(); ++i) FEDGE_TRY_VOID(files.write_column(i));
  return files;
}

Result<void> ColumnFiles::open_files(const char* mode) {
  for (const Column& column : columns_) {
    files_.emplace_back(std::fopen(path_of(column).c_str(), mode));
    if (files_.back() == nullptr) return system_error("cannot write", path_of(column), errno);
  }
  return {};
}

Result<ColumnFiles> ColumnFiles::open(const std::filesystem::path& directory, std::vector<Column> columns,
                                      std::uint64_t last) {
  ColumnFiles files(directory, std::move(columns));
  std::optional<std::uint64_t> rows;
  for (const Column& column : files.columns_) {
    FEDGE_TRY(file, ReadOnlyFile::open(files.path_of(column)));
    FEDGE_TRY(has, rows_in(file, column.type));
    if (!rows) {
      FEDGE_TRY(kept, rows_until(file, column.type, has, last));
      rows = kept;
    }
    if (has < *rows) return damaged(file.path());
  }
  files.rows_ = rows.value_or(0);
  FEDGE_TRY_VOID(files.open_files("r+be"));
  for (std::size_t i = 0; i < files.columns_.size(); ++i) {
    FEDGE_TRY_VOID(files.write_column(i));
    const auto path = files.path_of(files.columns_[i]);
    std::error_code error;
    std::filesystem::resize_file(path, kHeaderBytes + files.rows_ * size_of(files.columns_[i].type), error);
    if (error) return system_error("cannot write", path, error.value());
  }
  return files;
}

Result<std::vector<double>> ColumnFiles::read(const std::filesystem::path& directory, const Column& column) {
  FEDGE_TRY(file, ReadOnlyFile::open(directory / (column.name + ".npy")));
  FEDGE_TRY(rows, rows_in(file, column.type));
  const std::size_t size = size_of(column.type);
  std::vector<std::byte> bytes(rows * size);
  FEDGE_TRY_VOID(file.read(kHeaderBytes, bytes));
  std::vector<double> values(rows);
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t value = integer_in(std::span(bytes).subspan(i * size, size));
    if (column.type == Type::kFloat64)
      std::memcpy(&values[i], &value, sizeof value);
    else
      values[i] = static_cast<double>(value);
  }
  return values;
}

void ColumnFiles::add(std::span<const Value> row) {
  FEDGE_CHECK(row.size() == columns_.size(), "a row has one value for each column");
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (columns_[i].type != Type::kFloat64) {
      append_integer(waiting_[i], std::get<std::uint64_t>(row[i]), size_of(columns_[i].type));
      continue;
    }
    std::uint64_t bits = 0;
    const double value = std::get<double>(row[i]);
    std::memcpy(&bits, &value, sizeof bits);
    append_integer(waiting_[i], bits, sizeof bits);
  }
  ++waiting_rows_;
}

// The data come before the header that counts them: a file never claims rows that it does not have.
Result<void> ColumnFiles::write_column(std::size_t column) {
  const Type type = columns_[column].type;
  std::FILE* const file = files_[column].get();
  const auto write = [&](std::uint64_t offset, const std::string& bytes) {
    return std::fseek(file, static_cast<long>(offset), SEEK_SET) == 0 &&
           std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && std::fflush(file) == 0;
  };
  if (write(kHeaderBytes + rows_ * size_of(type), waiting_[column]) &&
      write(0, header(type, rows_ + waiting_rows_)))
    return {};
  return system_error("cannot write", path_of(columns_[column]), errno);
}

Result<void> ColumnFiles::commit() {
  if (waiting_rows_ == 0) return {};
  for (std::size_t i = 0; i < columns_.size(); ++i) FEDGE_TRY_VOID(write_column(i));
  rows_ += waiting_rows_;
  waiting_rows_ = 0;
  for (std::string& bytes : waiting_) bytes.clear();
  return {};
}

}  // namespace fedge::sim
