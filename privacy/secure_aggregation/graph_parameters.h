// Chooses the degree and the threshold of a random mask graph, such that secure aggregation is secure and
// likely to finish (Bell et al., "Secure Single-Server Aggregation with (Poly)Logarithmic Overhead", CCS
// 2020, section 4; the exact bounds are those of Google's federated-compute). Values are computed, not
// tabulated.
//
// The coordinator controls floor(corrupt * n) of the n members, and floor(dropout * n) drop out. Bad events:
//   insecure   the graph of honest survivors is cut, or a member has `threshold` corrupt neighbours:
//              below 2^-40
//   stuck      a member has fewer than `threshold` surviving neighbours: below 2^-20
// A coordinator may tell some members that a client survives, and others that it has dropped out. With a
// threshold above (degree + corrupt neighbours) / 2 this reveals nothing; with a lower one, it reveals single
// updates.
#pragma once

#include <cstdint>

#include "core/result.h"

namespace fedge::privacy {

enum class Adversary {
  kCurious,        // honest-but-curious: follows the protocol
  kSemiMalicious,  // may send members different messages once keys are exchanged
};

struct GraphAssumptions {
  double corrupt = 0.1;  // fraction of the members, in [0, 1)
  double dropout = 0.1;  // fraction of the members, in [0, 1)
  Adversary adversary = Adversary::kSemiMalicious;
};

struct GraphParameters {
  std::uint32_t degree = 0;     // of each member; members - 1 in the complete graph
  std::uint32_t threshold = 0;  // number of shares that recover a secret
  bool complete = false;
};

// The largest number of members that a fraction of them can be.
std::uint32_t at_most(double share, std::uint32_t members);

// The secure random graph with the fewest neighbours. kInvalid if there is none.
Result<GraphParameters> sparse_graph(std::uint32_t members, const GraphAssumptions& assumptions);
// The complete graph with a threshold of floor(2n/3) + 1 shares. A coordinator with up to a third of the
// members cannot defeat it (Bonawitz et al. 2017, section 6.2).
GraphParameters complete_graph(std::uint32_t members);

// Whether a graph chosen by the coordinator is secure; members check it. kRefused says what is wrong.
Result<void> check_secure(std::uint32_t members, const GraphParameters& graph,
                          const GraphAssumptions& assumptions);

}  // namespace fedge::privacy
