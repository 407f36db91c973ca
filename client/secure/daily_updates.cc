#include "client/secure/daily_updates.h"

#include <sstream>
#include <string>
#include <utility>

#include "core/platform/files.h"
#include "core/text.h"

namespace fedge::client {
namespace {

constexpr std::size_t kMaxDailyFile = 1024;

}  // namespace

// Format: one line with day, updates and the work of the last one; earlier versions wrote three numbers for
// it.
Result<DailyUpdates> DailyUpdates::read(const std::filesystem::path& state_directory, std::uint64_t day) {
  DailyUpdates daily(state_directory / "updates-today");
  daily.day_ = day;
  const auto text = read_file(daily.file_, kMaxDailyFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return daily;
  if (!text) return text.error();
  std::istringstream words(*text);
  std::uint64_t known = 0;
  std::uint32_t made = 0;
  std::string last;
  words >> known >> made >> last;
  const bool digest =
      last.size() == 2 * sizeof(Digest) && last.find_first_not_of("0123456789abcdef") == std::string::npos;
  std::uint32_t round = 0;
  std::uint32_t track = 0;
  const bool sound = words && (digest || words >> round >> track);
  if (!sound || !(words >> std::ws).eof())
    return Error{ErrorCode::kCorrupt, daily.file_.string() +
                                          " is damaged, so this client cannot tell how many updates it has "
                                          "made today; remove the file to count from 0"};
  if (known < day) return daily;
  daily.day_ = known;
  daily.made_ = made;
  daily.last_ = last;
  return daily;
}

// Before the digests, so that tasks of different kinds are different work.
constexpr std::array<const char*, 3> kKinds = {"", "evaluation ", "statistics "};

Digest DailyUpdates::work_of(const Digest& terms, const protocol::TrainRequest& request) {
  std::string text = std::string(kKinds.at(static_cast<std::size_t>(request.kind))) + to_hex(terms) + " " +
                     std::to_string(request.run.value()) + " " + std::to_string(request.round.value()) + " " +
                     std::to_string(request.track.value()) + " " + to_hex(request.model.id()) + " " +
                     (request.control ? to_hex(request.control->id()) : std::string("-")) + " " +
                     number_text(request.data_share) + " ";
  const auto part = request.coverage.encode();
  text.append(part.begin(), part.end());
  return sha256(text);
}

Result<void> DailyUpdates::admit(const Digest& work, std::uint32_t most) const {
  if (made_ < most || is_last(work)) return {};
  return Error{ErrorCode::kRefused,
               "this client has made " + std::to_string(made_) +
                   " updates today, the limit of --max-updates-per-day; it trains again after midnight UTC"};
}

Result<void> DailyUpdates::count(const Digest& work, std::uint32_t most) {
  FEDGE_TRY_VOID(admit(work, most));
  if (is_last(work)) return {};
  ++made_;
  last_ = to_hex(work);
  return write_file_atomic(file_, std::to_string(day_) + " " + std::to_string(made_) + " " + last_ + "\n",
                           0600);
}

}  // namespace fedge::client
