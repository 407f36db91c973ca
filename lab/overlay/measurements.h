// Measurements: records lookups, nodes and network counters of an overlay run and computes the results at the
// end. Owned by a run; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/overlay/overlay_run.h"
#include "sim/overlays/network.h"

namespace fedge::lab {

// One finished lookup.
struct LookupNote {
  std::size_t round = 0;  // round in which it started, counted from the first lookups
  bool success = false;   // a value from a live holder within kLookupPatience
  bool correct = false;   // and it names the true owner
  bool useful = false;    // and the publisher's agent is warm
  dht::LookupResult result;
};
inline constexpr double kLookupPatience = 10;  // seconds

class Measurements {
 public:
  explicit Measurements(const OverlayRunOptions& options) : options_(&options) {}

  // Starts with the first lookups; `first_round` counts from the first join.
  void begin(const sim::OverlayNetwork& network, std::size_t first_round);
  void round(const sim::OverlayNetwork& network);
  void add(LookupNote note) { notes_.push_back(std::move(note)); }
  void count_join() { ++joins_; }
  // Ends with the last round; open lookups may still finish.
  void end(const sim::OverlayNetwork& network);
  std::vector<double> figures() const;

 private:
  void add_lookups(std::vector<double>& out) const;
  void add_traffic(const sim::OverlayNetwork& network, std::vector<double>& out) const;
  void add_nodes(const sim::OverlayNetwork& network, std::vector<double>& out) const;
  double startup() const;

  const OverlayRunOptions* options_;
  std::vector<LookupNote> notes_;
  std::size_t first_round_ = 0;
  sim::NetworkCounters at_begin_;
  std::vector<std::uint64_t> load_at_begin_;
  std::vector<std::uint32_t> rounds_up_;
  std::uint64_t node_rounds_ = 0;
  std::uint64_t joins_ = 0;
  std::vector<double> of_network_;
};

}  // namespace fedge::lab
