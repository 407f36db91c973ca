// ArrivalRate: how many clients a coordinator lets in a second, and when those that it sends away come back.
// A token bucket counts who comes in; those sent away are promised places behind each other in a line that
// moves at the same rate. Sent away at the k-th place a client is asked for a window w = k / rate and comes
// back at a moment of [w, 2w] (protocol::Goodbye): so n of them return at ln 2 = 0.69 times the rate,
// whatever n is, which leaves room for others. Pure: time is an argument and never goes back. No memory for
// each client.
#pragma once

#include <cstddef>
#include <optional>

#include "core/time.h"

namespace fedge::server {

struct ArrivalRules {
  double per_second = 200;         // a TLS handshake costs about a millisecond of one core
  double burst = 1000;             // let in at once after a quiet time
  Duration shortest = seconds(1);  // window
  Duration longest = seconds(600);
  // Connections that one client may make without a pause, and the pause from then on.
  int per_client = 16;
  Duration per_client_pause = seconds(5);
};

class ArrivalRate {
 public:
  ArrivalRate() : ArrivalRate(ArrivalRules{}) {}
  explicit ArrivalRate(const ArrivalRules& rules) : rules_(rules), tokens_(rules.burst) {}

  // One that has come: nothing if it may come in, else the window to send it away with.
  std::optional<Duration> arrive(Time now);
  // The window for so many clients that are all sent away together.
  Duration window(std::size_t clients) const { return bounded(static_cast<double>(clients)); }
  // Over how long so many clients should come back that were cut off all together, by nobody's will: none if
  // all may come in at once.
  Duration spread(std::size_t clients) const;

 private:
  Duration bounded(double places) const;

  ArrivalRules rules_;
  double tokens_;
  double line_ = 0;  // places promised and not yet passed
  Time last_{};
};

}  // namespace fedge::server
