// NodeRecord: what a client says about itself, in the directory or to its coordinator: the metadata that
// selection may use. Every field may be wrong: it is the client's own word. Every one but the first two may
// be missing: the run does not ask for it, or the device's owner does not want it told.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fedge {

struct NodeRecord {
  // Of two records the later is kept, by round, then sequence.
  std::uint32_t round = 0;             // of the run, that the client saw last; in the directory 0
  std::uint64_t sequence = 0;          // larger in each later record of the client
  std::optional<double> latency_ms;    // to the coordinator and back; finite, at least 0
  std::optional<double> packet_loss;   // in [0, 1]; nobody measures it yet
  std::optional<double> freshness;     // seconds since it last trained; finite, at least 0
  std::optional<double> utility;       // samples times root mean square loss of its last training; the same
  std::optional<double> availability;  // share of the time that it is there, as it sees it; in [0, 1]
  // How many of its samples have each label; only what the run asks for (none, presence, or noisy counts).
  // Empty: it does not say.
  std::vector<double> labels;
  bool operator==(const NodeRecord&) const = default;
};

}  // namespace fedge
