// NodeRecord: what a client says about itself in the directory: the metadata that selection may use. Every
// field may be wrong: it is the client's own word.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fedge {

struct NodeRecord {
  std::uint32_t round = 0;     // of the run, that the client saw last
  std::uint64_t sequence = 0;  // counts this client's records; of two the later holds
  double latency_ms = 0;       // to the coordinator and back
  double packet_loss = 0;      // in [0, 1]
  // How many of its samples have each label; only what the run asks for (none, presence, or noisy counts).
  // Empty: it does not say.
  std::vector<double> labels;
  bool operator==(const NodeRecord&) const = default;
};

}  // namespace fedge
