// NodeRecord: metadata that a client publishes about itself, in the directory or to its coordinator, for
// client selection. No field is verified. Every field but the first two may be absent: the run does not
// request it, or the device's owner does not publish it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fedge {

struct NodeRecord {
  // The later record wins: by round, then sequence.
  std::uint32_t round = 0;             // last round of the run that the client saw; 0 in the directory
  std::uint64_t sequence = 0;          // larger in each later record of the client
  std::optional<double> latency_ms;    // round trip to the coordinator; finite, at least 0
  std::optional<double> packet_loss;   // in [0, 1]; not measured yet
  std::optional<double> freshness;     // seconds since it last trained; finite, at least 0
  std::optional<double> utility;       // samples times RMS loss of its last training; finite, at least 0
  std::optional<double> availability;  // share of time that it is connected, by its own estimate; in [0, 1]
  std::optional<double> battery;       // level of its battery, in [0, 1]; 1 if it needs none
  // Number of its samples with each label, in the form that the run requests (none, presence, or noisy
  // counts). Empty: not reported.
  std::vector<double> labels;
  bool operator==(const NodeRecord&) const = default;
};

}  // namespace fedge
