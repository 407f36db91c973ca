#include "learn/tables/csv_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fedge::learn {
namespace {

constexpr std::size_t kFirstBuffer = std::size_t{256} << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

CsvReader::CsvReader(TextFile source, char separator)
    : source_(std::move(source)), separator_(separator), buffer_(kFirstBuffer) {}

Result<CsvReader> CsvReader::open(const std::filesystem::path& path, char separator) {
  FEDGE_TRY(source, TextFile::open(path));
  CsvReader reader(std::move(source), separator);
  FEDGE_TRY_VOID(reader.read_more());
  const std::string_view start(reader.buffer_.data(), reader.end_);
  if (start.starts_with(kByteOrderMark)) reader.begin_ = kByteOrderMark.size();
  return reader;
}

std::string CsvReader::place() const { return source_.path().string() + ":" + std::to_string(line_); }

Error CsvReader::wrong(const std::string& what) const { return invalid(place() + ": " + what); }

// Moves what is left to the buffer's start, and makes room if there is none.
Result<void> CsvReader::read_more() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kMaxRowBytes)
      return wrong("the row is longer than " + std::to_string(kMaxRowBytes >> 20) +
                   " MiB; is a quote missing, or is this not a CSV file?");
    buffer_.resize(2 * buffer_.size());
  }
  FEDGE_TRY(count, source_.read(std::span(buffer_).subspan(end_)));
  at_end_ = count == 0;
  end_ += count;
  return {};
}

Result<CsvReader::Row> CsvReader::find_row() {
  Row row;
  std::size_t seen = 0;    // bytes of the row that were searched
  bool in_quotes = false;  // at `seen`
  while (true) {
    const char* start = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    while (seen < size) {
      // The next line end; quotes before it decide whether it ends the row.
      const void* found = std::memchr(start + seen, '\n', size - seen);
      const std::size_t stop =
          found != nullptr ? static_cast<std::size_t>(static_cast<const char*>(found) - start) : size;
      for (const char* at = start + seen; at < start + stop; ++at) {
        at = static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(start + stop - at)));
        if (at == nullptr) break;
        in_quotes = !in_quotes;  // a doubled quote changes it twice
        row.quoted = true;
      }
      seen = stop;
      if (found == nullptr) break;
      ++seen;
      if (in_quotes) continue;
      row.size = stop > 0 && start[stop - 1] == '\r' ? stop - 1 : stop;
      row.with_end = seen;
      return row;
    }
    if (at_end_) {
      if (in_quotes) return wrong("a quote that begins in this row has no end");
      row.size = size > 0 && start[size - 1] == '\r' ? size - 1 : size;
      row.with_end = size;
      return row;
    }
    FEDGE_TRY_VOID(read_more());
  }
}

Result<bool> CsvReader::next() {
  fields_.clear();
  while (true) {
    line_ = next_line_;
    FEDGE_TRY(row, find_row());
    if (row.with_end == 0) return false;
    char* start = buffer_.data() + begin_;
    begin_ += row.with_end;
    next_line_ += row.quoted ? static_cast<std::size_t>(std::count(start, start + row.with_end, '\n')) : 1;
    if (row.size == 0) continue;
    FEDGE_TRY_VOID(row.quoted ? split_quoted(start, row.size) : split_plain(start, row.size));
    return true;
  }
}

Result<void> CsvReader::split_plain(char* row, std::size_t size) {
  const char* const end = row + size;
  for (const char* at = row;;) {
    const auto* found =
        static_cast<const char*>(std::memchr(at, separator_, static_cast<std::size_t>(end - at)));
    const char* stop = found != nullptr ? found : end;
    if (fields_.size() == kMaxFields)
      return wrong("the row has more than " + std::to_string(kMaxFields) + " fields");
    fields_.emplace_back(at, static_cast<std::size_t>(stop - at));
    if (found == nullptr) return {};
    at = stop + 1;
  }
}

// Removes quotes in place: a field never becomes longer.
Result<void> CsvReader::split_quoted(char* row, std::size_t size) {
  char* const end = row + size;
  for (char* at = row;;) {
    if (fields_.size() == kMaxFields)
      return wrong("the row has more than " + std::to_string(kMaxFields) + " fields");
    const auto wrong_field = [&](const char* what) {
      return wrong("field " + std::to_string(fields_.size() + 1) + ": " + what);
    };
    char* out = at;
    const char* const begin = at;
    if (at < end && *at == '"') {
      for (++at;; ++at) {
        if (at == end) return wrong_field("its quote has no end");
        if (*at == '"') {
          if (at + 1 == end || at[1] != '"') break;
          ++at;
        }
        *out++ = *at;
      }
      ++at;
      if (at != end && *at != separator_)
        return wrong_field("text follows the closing quote; double a quote that belongs to the field");
    } else {
      for (; at < end && *at != separator_; ++at) {
        if (*at == '"') return wrong_field("contains a quote but does not begin with one");
        ++out;
      }
    }
    fields_.emplace_back(begin, static_cast<std::size_t>(out - begin));
    if (at == end) return {};
    ++at;
  }
}

}  // namespace fedge::learn
