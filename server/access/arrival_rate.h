// ArrivalRate limits how many clients a coordinator admits per second and tells the others when to retry. A
// token bucket counts admitted clients. Deferred clients get places in a queue that moves at the same rate.
// A client deferred at place k is given a window w = k / rate and returns at a random moment in [w, 2w]
// (protocol::Goodbye). So n deferred clients return at ln 2 = 0.69 times the rate, whatever n is, which
// leaves capacity for others. Pure: time is an argument and must not go back. Uses constant memory, none
// per client.
#pragma once

#include <cstddef>
#include <optional>

#include "core/time.h"

namespace fedge::server {

struct ArrivalRules {
  double per_second = 200;         // a TLS handshake costs about a millisecond of one core
  double burst = 1000;             // clients admitted at once after a quiet time
  Duration shortest = seconds(1);  // shortest and longest window
  Duration longest = seconds(600);
  // Connections that one client may make without a pause, and the interval between connections after that.
  int per_client = 16;
  Duration per_client_pause = seconds(5);
};

class ArrivalRate {
 public:
  ArrivalRate() : ArrivalRate(ArrivalRules{}) {}
  explicit ArrivalRate(const ArrivalRules& rules) : rules_(rules), tokens_(rules.burst) {}

  // Counts a new connection. Returns nothing if it is admitted, else the window to send in its Goodbye.
  std::optional<Duration> arrive(Time now);
  // Returns the window for `clients` clients that are all sent away together.
  Duration window(std::size_t clients) const { return bounded(static_cast<double>(clients)); }
  // Returns the time over which `clients` clients should reconnect after all lost their connections
  // together, as in a crash. Zero if all may be admitted at once.
  Duration spread(std::size_t clients) const;

 private:
  Duration bounded(double places) const;

  ArrivalRules rules_;
  double tokens_;
  double line_ = 0;  // queue places promised and not yet passed
  Time last_{};
};

}  // namespace fedge::server
