#include "server/coordinator/refusal_log.h"

#include "server/enrolment.h"

namespace fedge::server {
namespace {

constexpr Duration kEvery = seconds(60);

}  // namespace

std::optional<Event> RefusalLog::note(const std::string& household, const std::string& address,
                                      const std::string& reason, Time now) {
  if (reason == kBookBusy)
    return Event{Severity::kDebug, "client.refused", {}}.with("address", address).with("reason", reason);
  auto known = entries_.find(household);
  if (known == entries_.end() && entries_.size() >= kMaxAddresses) {
    std::erase_if(entries_, [&](const auto& entry) { return now - entry.second.reported >= kEvery; });
    if (entries_.size() >= kMaxAddresses) known = entries_.try_emplace("", Entry{now - kEvery, 0}).first;
  }
  if (known == entries_.end()) known = entries_.emplace(household, Entry{now - kEvery, 0}).first;
  Entry& entry = known->second;
  if (now - entry.reported < kEvery) {
    ++entry.unsaid;
    return std::nullopt;
  }
  Event event{Severity::kWarning, "client.refused", {}};
  event.with("address", address).with("reason", reason);
  if (entry.unsaid > 0) event.with("suppressed", entry.unsaid);
  entry = {now, 0};
  return event;
}

}  // namespace fedge::server
