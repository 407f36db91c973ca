// How many neighbours and which threshold make secure aggregation over a random graph both secure and likely
// to come to an end (Bell et al., "Secure Single-Server Aggregation with (Poly)Logarithmic Overhead", CCS
// 2020, section 4; the exact bounds are those that Google's federated-compute uses). Computed, never looked
// up.
//
// Bad events, of a random graph on n members, floor(corrupt * n) of whom the coordinator controls, while
// floor(dropout * n) drop out:
//   insecure   the honest survivors fall apart, or somebody has `threshold` corrupt neighbours: below 2^-40
//   stuck      somebody has fewer than `threshold` surviving neighbours: below 2^-20
// A coordinator may tell some members that one is alive and others that it is gone. A threshold above
// (degree + corrupt neighbours) / 2 makes that useless; without it, such a coordinator sees single updates.
#pragma once

#include <cstdint>

#include "core/result.h"

namespace fedge::privacy {

enum class Adversary {
  kCurious,        // follows the protocol, and looks
  kSemiMalicious,  // deviates once keys are there: tells different members different things
};

struct GraphAssumptions {
  double corrupt = 0.1;  // share of the members, in [0, 1)
  double dropout = 0.1;  // likewise
  Adversary adversary = Adversary::kSemiMalicious;
};

struct GraphParameters {
  std::uint32_t degree = 0;     // of each member; members - 1 in the complete graph
  std::uint32_t threshold = 0;  // shares that give a secret back
  bool complete = false;
};

// So many of the members at most, for a share of them.
std::uint32_t at_most(double share, std::uint32_t members);

// Of the random graph with the fewest neighbours that will do. kInvalid if none will.
Result<GraphParameters> sparse_graph(std::uint32_t members, const GraphAssumptions& assumptions);
// Of the complete graph: floor(2n/3) + 1 shares, which a coordinator and up to a third of the members cannot
// get round (Bonawitz et al. 2017, section 6.2).
GraphParameters complete_graph(std::uint32_t members);

// Whether the graph is secure, whoever has chosen it: what a member asks itself. kRefused says what is wrong.
Result<void> check_secure(std::uint32_t members, const GraphParameters& graph,
                          const GraphAssumptions& assumptions);

}  // namespace fedge::privacy
