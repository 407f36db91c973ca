// RepeatedEvents: writes events to a log so that many equal warnings or errors are a few lines and a count:
// "... 97 more like this: update.refused ...". Two are equal if name and fields are the same, apart from who
// and when (client, round, run, ...); of warnings numbers in `reason` count as equal too. An event that
// differs in anything else is always written. Informative events are never held back. Memory: at most
// kMaxCauses causes; the one that is forgotten is counted in the log first. Externally synchronised.
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
  static constexpr std::uint64_t kShown = 3;  // lines of one cause before it is counted
  static constexpr std::size_t kMaxCauses = 256;
  // After this long a cause is counted in the log and shown anew.
  static constexpr Duration kWindow = std::chrono::minutes{1};

  using Write = std::function<void(Severity, const std::string& line)>;
  explicit RepeatedEvents(Write write) : write_(std::move(write)) {}

  void add(const Event& event, Time now);
  // Writes what has been counted and not said, at the end of a program.
  void flush();

 private:
  struct Cause {
    Severity severity;
    std::string text;  // without who and when
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
