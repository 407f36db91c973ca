#include "client/secure/answered.h"

#include <sstream>
#include <string>

#include "core/platform/files.h"

namespace fedge::client {
namespace {

constexpr std::size_t kMaxAnsweredFile = 1 << 20;  // of the most tracks that a run can have

}  // namespace

// A line for each track: track, round.
Result<Answered> Answered::read(const std::filesystem::path& directory) {
  Answered answered(directory);
  const auto file = directory / "answered";
  const auto text = read_file(file, kMaxAnsweredFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return answered;
  if (!text) return text.error();
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::uint32_t track = 0;
    std::uint32_t round = 0;
    if (!(words >> track >> round) || !words.eof())
      return Error{ErrorCode::kCorrupt, file.string() + " is damaged"};
    answered.last_[TrackId(track)] = RoundNumber(round);
  }
  return answered;
}

Result<void> Answered::write() const {
  FEDGE_TRY_VOID(make_directory(directory_, 0700));
  std::string text;
  for (const auto& [track, round] : last_)
    text += std::to_string(track.value()) + " " + std::to_string(round.value()) + "\n";
  return write_file_atomic(directory_ / "answered", text, 0600);
}

}  // namespace fedge::client
