// RepeatedEvents: writes events to a log and condenses many equal warnings or errors into a few lines and a
// count: "... 97 more like this: update.refused ...". Events are equal if name and fields are equal, except
// client, round and similar fields. In the `reason` of a warning, numbers are ignored too. An event that
// differs otherwise is always written. Informational events are never held back. Memory: at most kMaxCauses
// causes; before the oldest is dropped, its count is written. Externally synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/event.h"
#include "core/time.h"

namespace fedge {

class RepeatedEvents {
 public:
  static constexpr std::uint64_t kShown = 3;  // lines of one cause that are written before counting
  static constexpr std::size_t kMaxCauses = 256;
  // Length of a window: at its end the count is written, and the cause is shown anew.
  static constexpr Duration kWindow = std::chrono::minutes{1};

  // `line` is the event as text. A count is the event log.repeated with the fields count and like.
  using Write = std::function<void(const Event& event, const std::string& line)>;
  explicit RepeatedEvents(Write write) : write_(std::move(write)) {}

  void add(const Event& event, Time now);
  // Writes the remaining counts. Call it at the end of a program.
  void flush();

 private:
  struct Cause {
    Severity severity;
    std::string text;  // without client, round and similar fields
    Time first;
    std::uint64_t shown = 0;
    std::uint64_t held_back = 0;
  };
  using Causes = std::map<std::string, Cause>;

  void say(const Cause& cause) const;
  void end_windows(Time now);

  Write write_;
  Causes causes_;
};

}  // namespace fedge
