// NodeRecord: what a client says about itself in the directory: the metadata that selection may use. Every
// field may be wrong: it is the client's own word.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fedge {

struct NodeRecord {
  // Of two records the later is kept, by round, then sequence: what the directory goes by is part of what
  // the client says.
  std::uint32_t round = 0;     // of the run, that the client saw last
  std::uint64_t sequence = 0;  // larger in each later record of the client
  double latency_ms = 0;       // to the coordinator and back
  double packet_loss = 0;      // in [0, 1]; 0 from who does not measure it. No sampler goes by it
  // How many of its samples have each label; only what the run asks for (none, presence, or noisy counts).
  // Empty: it does not say.
  std::vector<double> labels;
  bool operator==(const NodeRecord&) const = default;
};

}  // namespace fedge
