// RefusalLog: keeps the log readable while strangers hammer at the door: one event an address and minute,
// which says how many more there were since the last. Pure; the addresses it remembers are bounded.
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

  // What to report of this refusal, if anything. `household` is what counts as one address, `address` what
  // the event shows. Beyond kMaxAddresses within a minute, all further ones count as one.
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
