#include "client/secure/daily_updates.h"

#include <sstream>
#include <string>
#include <utility>

#include "core/platform/files.h"

namespace fedge::client {
namespace {

constexpr std::size_t kMaxDailyFile = 1024;

}  // namespace

// One line: day, updates; run, round and track of the last one.
Result<DailyUpdates> DailyUpdates::read(const std::filesystem::path& state_directory, std::uint64_t day) {
  DailyUpdates daily(state_directory / "updates-today");
  daily.day_ = day;
  const auto text = read_file(daily.file_, kMaxDailyFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return daily;
  if (!text) return text.error();
  std::istringstream words(*text);
  std::uint64_t known = 0;
  std::uint32_t made = 0;
  std::uint64_t run = 0;
  std::uint32_t round = 0;
  std::uint32_t track = 0;
  if (!(words >> known >> made >> run >> round >> track >> std::ws) || !words.eof())
    return Error{ErrorCode::kCorrupt, daily.file_.string() +
                                          " is damaged; without it this client cannot know "
                                          "how many updates it has made today; remove it to count from 0"};
  if (known < day) return daily;
  daily.day_ = known;
  daily.made_ = made;
  daily.run_ = RunId(run);
  daily.task_ = {RoundNumber(round), TrackId(track)};
  return daily;
}

Result<void> DailyUpdates::admit(RunId run, TaskId task, std::uint32_t most) const {
  if (made_ < most || is_last(run, task)) return {};
  return Error{ErrorCode::kRefused,
               "this client has made " + std::to_string(made_) +
                   " updates today, as many as --max-updates-per-day allows; it makes more "
                   "from the next day on (UTC)"};
}

Result<void> DailyUpdates::count(RunId run, TaskId task, std::uint32_t most) {
  FEDGE_TRY_VOID(admit(run, task, most));
  if (is_last(run, task)) return {};
  ++made_;
  run_ = run;
  task_ = task;
  std::string text;
  for (const std::uint64_t number : {day_, std::uint64_t{made_}, run.value(),
                                     std::uint64_t{task.round.value()}, std::uint64_t{task.track.value()}})
    text += std::to_string(number) + " ";
  text.back() = '\n';
  return write_file_atomic(file_, text, 0600);
}

}  // namespace fedge::client
