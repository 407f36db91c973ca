// RefusalLog limits log lines about refused connections to one per address and minute. Each says how many
// were suppressed since the last. Pure; the number of addresses is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/event.h"
#include "core/time.h"

namespace fedge::server {

class RefusalLog {
 public:
  static constexpr std::size_t kMaxAddresses = 1024;

  // Returns the event to report for this refusal, if any. `household` is the address that counts, `address`
  // the one shown. With more than kMaxAddresses in a minute, the rest count as one. A refusal with the reason
  // kBookBusy is normal operation: always an event of severity debug.
  std::optional<Event> note(const std::string& household, const std::string& address,
                            const std::string& reason, Time now);

 private:
  struct Entry {
    Time reported{};
    std::int64_t unsaid = 0;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace fedge::server
