#include "client/secure/private_releases.h"

#include <sstream>
#include <string>

#include "core/platform/files.h"

namespace fedge::client {
namespace {

constexpr const char* kFile = "private-releases";
constexpr std::size_t kMaxReleasesFile = std::size_t{4} << 20;  // some 80,000 runs

Error one_too_many(std::uint32_t most) {
  return {ErrorCode::kRefused, "this client has sent the " + std::to_string(most) +
                                   " updates that the run's privacy allows it "
                                   "(differential_privacy.max_participations)"};
}

}  // namespace

// A line for each run: run, updates sent; round, track and id of the last one.
Result<PrivateReleases> PrivateReleases::read(const std::filesystem::path& state_directory) {
  PrivateReleases releases(state_directory / kFile);
  const auto text = read_file(releases.file_, kMaxReleasesFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return releases;
  if (!text) return text.error();
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::uint64_t run = 0;
    Run known;
    std::uint32_t round = 0;
    std::uint32_t track = 0;
    if (!(words >> run >> known.sent >> round >> track >> known.id) || !words.eof())
      return Error{ErrorCode::kCorrupt, releases.file_.string() +
                                            " is damaged; without it this client cannot "
                                            "know what it has told of its data"};
    known.task = {RoundNumber(round), TrackId(track)};
    releases.runs_.insert_or_assign(RunId(run), known);
  }
  return releases;
}

Result<void> PrivateReleases::write() const {
  std::string text;
  for (const auto& [id, run] : runs_)
    text += std::to_string(id.value()) + " " + std::to_string(run.sent) + " " +
            std::to_string(run.task.round.value()) + " " + std::to_string(run.task.track.value()) + " " +
            std::to_string(run.id) + "\n";
  if (text.size() > kMaxReleasesFile)
    return Error{ErrorCode::kUnavailable, file_.string() + " has no room for another run"};
  return write_file_atomic(file_, text, 0600);
}

Result<void> PrivateReleases::admit(RunId run, TaskId task, std::uint32_t most) const {
  const auto known = runs_.find(run);
  if (known == runs_.end() || known->second.sent < most || known->second.task == task) return {};
  return one_too_many(most);
}

Result<void> PrivateReleases::count(const Update& update, std::uint32_t most) {
  Run& run = runs_[update.run];
  if (run.sent > 0 && run.task == update.task && run.id == update.id) return {};
  if (run.sent >= most) return one_too_many(most);
  const Run before = run;
  run = {run.sent + 1, update.task, update.id};
  auto written = write();
  if (!written) run = before;
  return written;
}

}  // namespace fedge::client
