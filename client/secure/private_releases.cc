#include "client/secure/private_releases.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/text.h"
#include "privacy/differential/local_privacy.h"

namespace fedge::client {
namespace {

constexpr const char* kFile = "private-releases";
constexpr std::size_t kMaxReleasesFile = std::size_t{4} << 20;  // about 80,000 runs

Error one_too_many(std::uint32_t most) {
  return {ErrorCode::kRefused, "this client has already sent " + std::to_string(most) +
                                   " updates, the limit of differential_privacy.max_participations"};
}

// Returns the weaker of two noises that hide a run's updates. 0 means no noise of that kind; then the other
// counts.
double weaker(double one, double other) {
  return one == 0 || other == 0 ? std::max(one, other) : std::min(one, other);
}

}  // namespace

// Format, one line for each run: run, ordinal, updates sent; round, track and id of the last one; own
// noise, noise in sums. Earlier versions wrote no noise in sums; own noise then stands for both.
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
    if (!(words >> run >> known.place >> known.sent >> round >> track >> known.id >> known.noise.own) ||
        !(words.eof() ? (known.noise.in_sums = known.noise.own, true)
                      : words >> known.noise.in_sums && words.eof()) ||
        !(known.noise.own >= 0 && known.noise.in_sums >= known.noise.own))
      return Error{ErrorCode::kCorrupt,
                   releases.file_.string() +
                       " is damaged, so this client cannot tell how much its updates have revealed; if you "
                       "remove the file, the privacy limits count from 0"};
    known.task = {RoundNumber(round), TrackId(track)};
    releases.runs_.insert_or_assign(RunId(run), known);
  }
  return releases;
}

Result<void> PrivateReleases::write() const {
  std::string text;
  for (const auto& [id, run] : runs_) {
    for (const std::uint64_t number :
         {id.value(), run.place, std::uint64_t{run.sent}, std::uint64_t{run.task.round.value()},
          std::uint64_t{run.task.track.value()}, run.id})
      text += std::to_string(number) + " ";
    text += number_text(run.noise.own) + " " + number_text(run.noise.in_sums) + "\n";
  }
  if (text.size() > kMaxReleasesFile)
    return Error{ErrorCode::kUnavailable, file_.string() + " is full and cannot hold another run"};
  return write_file_atomic(file_, text, 0600);
}

std::uint64_t PrivateReleases::place(RunId run) const {
  const auto known = runs_.find(run);
  if (known != runs_.end()) return known->second.place;
  std::uint64_t last = 0;
  for (const auto& [id, other] : runs_) last = std::max(last, other.place);
  return last + 1;
}

Result<void> PrivateReleases::admit(RunId run, TaskId task, std::uint32_t most) const {
  const auto known = runs_.find(run);
  if (known == runs_.end() || known->second.sent < most || known->second.task == task) return {};
  return one_too_many(most);
}

Result<void> PrivateReleases::count(const Update& update, const Limits& limits) {
  const auto known = runs_.find(update.run);
  Run run = known == runs_.end() ? Run{.place = place(update.run), .noise = update.noise} : known->second;
  // If a run is described anew with less noise, all of its updates count with the lower noise.
  const Noise noise = {weaker(run.noise.own, update.noise.own),
                       weaker(run.noise.in_sums, update.noise.in_sums)};
  const bool once_more = run.sent > 0 && run.task == update.task && run.id == update.id;
  if (once_more && noise == run.noise) return {};
  if (!once_more && run.sent >= limits.most) return one_too_many(limits.most);
  run = {run.place, run.sent + (once_more ? 0 : 1), update.task, update.id, noise};
  FEDGE_TRY_VOID(check({update.run, run.noise, run.sent}, limits));
  const auto before = runs_;
  runs_.insert_or_assign(update.run, run);
  auto written = write();
  if (!written) runs_ = before;
  return written;
}

Result<void> PrivateReleases::check(const Planned& planned, const Limits& limits) const {
  const auto within = [](double told, double most, const char* option) -> Result<void> {
    if (told <= most) return {};
    return Error{ErrorCode::kRefused,
                 "with this update the epsilon of everything that this client has sent would be " +
                     number_text(told) + ", above the limit of " + option + " " + number_text(most)};
  };
  if (limits.max_epsilon) {
    FEDGE_TRY(told, epsilon(planned, limits.delta));
    FEDGE_TRY_VOID(within(told, *limits.max_epsilon, "--max-epsilon"));
  }
  if (limits.require_noise) {
    FEDGE_TRY(told, epsilon_in_sums(planned, limits.delta));
    FEDGE_TRY_VOID(within(told, *limits.require_noise, "--require-noise"));
  }
  return {};
}

Result<double> PrivateReleases::total(const Planned& planned, double delta, double Noise::*noise) const {
  std::vector<privacy::NoisedUpdates> all = {{planned.noise.*noise, planned.updates}};
  for (const auto& [id, run] : runs_)
    if (id != planned.run && run.noise.*noise > 0) all.push_back({run.noise.*noise, run.sent});
  return privacy::gaussian_epsilon(all, delta);
}

Result<double> PrivateReleases::epsilon(const Planned& planned, double delta) const {
  return total(planned, delta, &Noise::own);
}

Result<double> PrivateReleases::epsilon_in_sums(const Planned& planned, double delta) const {
  return total(planned, delta, &Noise::in_sums);
}

}  // namespace fedge::client
