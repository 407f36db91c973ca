#include "learn/text/corpus_files.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <system_error>

#include "core/platform/files.h"
#include "core/text.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kEntriesToOneHeldOut = 10;

Error too_large(const std::filesystem::path& path, std::size_t bytes, std::size_t limit) {
  return {ErrorCode::kResource, path.string() + " has " + std::to_string(bytes) + " bytes; the limit is " +
                                    std::to_string(limit) + " bytes"};
}

Result<void> check_encoding(const std::filesystem::path& path, std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    std::uint32_t code = 0;
    const std::size_t length = take_character(text.substr(i), code);
    if (length > 0 && code != 0) {
      i += length;
      continue;
    }
    const auto line = static_cast<std::size_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n') + 1);
    return corrupt_line(path, line,
                        length > 0 ? "contains a NUL byte, so the file is not text"
                                   : "is not valid UTF-8; convert the file with iconv");
  }
  return {};
}

}  // namespace

Error not_there(const CorpusPlace& place, const std::filesystem::path& path) {
  return {ErrorCode::kNotFound, path.string() + " does not exist: " + place.remedy};
}

Error corrupt_line(const std::filesystem::path& path, std::size_t line, const std::string& what) {
  return {ErrorCode::kCorrupt, path.string() + ":" + std::to_string(line) + ": " + what};
}

Result<std::vector<std::string>> list_files(const CorpusPlace& place, bool (*wanted)(std::string_view name)) {
  std::error_code failure;
  std::filesystem::directory_iterator entry(place.directory, failure);
  std::vector<std::string> names;
  std::size_t bytes = 0;
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    std::string name = entry->path().filename().string();
    std::error_code ignored;  // a dangling link is not a file
    if (!wanted(name) || !entry->is_regular_file(ignored)) continue;
    names.push_back(std::move(name));
    if (names.size() > kMaxGroups)
      return Error{ErrorCode::kResource, place.directory.string() + " contains more than " +
                                             std::to_string(kMaxGroups) + " files; merge some of them"};
    const auto size = entry->file_size(ignored);
    if (!ignored) bytes += std::min<std::size_t>(size, kMaxCorpusBytes);
    if (bytes > kMaxCorpusBytes) return too_large(place.directory, bytes, kMaxCorpusBytes);
  }
  if (failure == std::errc::no_such_file_or_directory || failure == std::errc::not_a_directory)
    return not_there(place, place.directory);
  if (failure) return system_error("cannot list", place.directory, failure.value());
  if (names.empty())
    return Error{ErrorCode::kNotFound,
                 place.directory.string() + " contains no file of this data set: " + place.remedy};
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> read_text(const CorpusPlace& place, const std::string& name) {
  const auto path = place.directory / name;
  const auto file = ReadOnlyFile::open(path);
  if (!file && file.error().code == ErrorCode::kNotFound) return not_there(place, path);
  if (!file) return file.error();
  if (file->size() > kMaxCorpusFileBytes) return too_large(path, file->size(), kMaxCorpusFileBytes);
  std::string text(file->size(), '\0');
  FEDGE_TRY_VOID(file->read(0, std::as_writable_bytes(std::span(text))));
  if (text.empty()) return Error{ErrorCode::kCorrupt, path.string() + " is empty"};
  FEDGE_TRY_VOID(check_encoding(path, text));
  return text;
}

void BlockSplit::add(std::string_view text, TextGroup& group) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t block = (position_ + at) / block_bytes_;
    at = std::min(text.size(), (block + 1) * block_bytes_ - position_);
    std::size_t end = at;
    while (end > begin && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
    (block % every_ == every_ - 1 ? group.held_out : group.train) += text.substr(begin, end - begin);
    begin = end;
  }
  position_ += text.size();
}

void EntrySplit::add(std::string_view entry, TextGroup& group) {
  ++entries_;
  (entries_ % kEntriesToOneHeldOut == 0 ? group.held_out : group.train) += entry;
}

}  // namespace fedge::learn
