#include "learn/tables/json_lines.h"

#include "core/detail/json.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kLinesPiece = std::size_t{256} << 10;
constexpr int kLevels = 64;  // of values in columns that are not used

}  // namespace

Result<JsonLines> JsonLines::open(const std::filesystem::path& path, std::vector<std::string> columns) {
  FEDGE_TRY(file, TextFile::open(path));
  return JsonLines(std::move(file), std::move(columns));
}

std::string JsonLines::place() const { return file_.path().string() + ":" + std::to_string(line_); }

Result<bool> JsonLines::read_line() {
  std::size_t searched = begin_;
  while (true) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      row_ = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      return true;
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched = buffer_.size();
    if (searched > kMaxLineBytes)
      return invalid(place() + ": the line is longer than " + std::to_string(kMaxLineBytes >> 20) + " MiB");
    buffer_.resize(searched + kLinesPiece);
    FEDGE_TRY(count, file_.read(std::span(buffer_).subspan(searched)));
    buffer_.resize(searched + count);
    if (count > 0) continue;
    row_ = buffer_;
    begin_ = buffer_.size();
    return !row_.empty();
  }
}

Result<bool> JsonLines::next() {
  while (true) {
    ++line_;
    FEDGE_TRY(more, read_line());
    if (!more) return false;
    if (row_.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    FEDGE_TRY_VOID(split());
    return true;
  }
}

Result<void> JsonLines::split() {
  const auto object = parse_ordered_json(row_, kLevels);
  if (!object.is_object()) return invalid(place() + ": the line is not a JSON object");
  values_.assign(columns_.size(), "");
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto value = object.find(columns_[i]);
    if (value == object.end() || value->is_null()) continue;
    if (value->is_structured())
      return invalid(place() + ": column \"" + columns_[i] +
                     "\" is not a string, a number, true, false or null");
    values_[i] = value->is_string() ? value->get<std::string>() : json_text(*value);
  }
  fields_.assign(values_.begin(), values_.end());
  return {};
}

}  // namespace fedge::learn
