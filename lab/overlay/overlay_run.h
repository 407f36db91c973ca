// One run of one overlay: building the network, churn, lookups, and measurements.
//
// Nodes join in sequence, evenly over `join_rounds`, each through a random member, and publish their keys as
// soon as they are members. Lookups begin when the last node begins to join ("cold") or `warm_up` rounds
// later ("warm"), and continue for `rounds`; all results except those of joining cover this time. With
// `static_tables` no node joins: all are members with perfect tables from the start. Churn begins after
// joining: each node is up for Exp(U) and down for Exp(D) rounds, D = U (1 - a) / a, so that of nodes / a
// identities about `nodes` are up. Deterministic in options and seed; one thread. 4096 nodes and 300 rounds
// are 10 to 25 million events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "dht/overlays/options.h"

namespace fedge::lab {

struct OverlayRunOptions {
  dht::OverlayOptions overlay;
  std::size_t nodes = 4096;
  std::size_t rounds = 300;
  std::size_t join_rounds = 64;
  std::optional<std::size_t> warm_up;  // rounds; default ceil(log2 nodes)
  std::uint64_t seed = 1;
  double session_rounds = 0;  // U; 0: no node leaves
  double availability = 0.8;  // a
  double graceful = 0.2;      // share of departures with notice
  double lookups_per_round = 10;
  std::size_t keys = 10'000;
  std::size_t value_bytes = 64;
  double agent_warm_rounds = 0;  // mean time an agent on a live node is warm; 0: always
  double agent_cold_rounds = 0;
  bool static_tables = false;
};

// Errors are kInvalid and name the option as on the command line.
Result<void> check_run(const OverlayRunOptions& options);

// Results in the order of figure_names(); NaN: not measured.
struct OverlayRunResult {
  std::vector<double> figures;
  std::uint64_t events = 0;
  double wall_seconds = 0;
  std::uint64_t trace_hash = 0;
};

struct FigureName {
  const char* key;    // in JSON
  const char* label;  // in tables, with the unit
  int decimals;
};
const std::vector<FigureName>& figure_names();

// The options must have passed check_run().
OverlayRunResult run_overlay(const OverlayRunOptions& options);

}  // namespace fedge::lab
