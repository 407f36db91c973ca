// Measurements: what a run of an overlay notes of its lookups, its nodes and the network's counters, and the
// figures made of it at the end. Owned by a run; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/overlays/experiment/overlay_run.h"
#include "sim/overlays/network/network.h"

namespace fedge::sim {

// One lookup that came to an end.
struct LookupNote {
  std::size_t round = 0;  // since lookups began, in which it was started
  bool success = false;   // a value, from a holder that lives, within kLookupPatience
  bool correct = false;   // and it names the owner that there is, seen from above
  bool useful = false;    // and the publisher's agent is warm
  LookupResult result;
};
inline constexpr double kLookupPatience = 10;  // seconds

class Measurements {
 public:
  explicit Measurements(const OverlayRunOptions& options) : options_(&options) {}

  // Lookups begin; `first_round` is since the first join.
  void begin(const OverlayNetwork& network, std::size_t first_round);
  void round(const OverlayNetwork& network);
  void add(LookupNote note) { notes_.push_back(std::move(note)); }
  void count_join() { ++joins_; }
  // The last round is over; lookups on their way may still come to their end.
  void end(const OverlayNetwork& network);
  std::vector<double> figures() const;

 private:
  void add_lookups(std::vector<double>& out) const;
  void add_traffic(const OverlayNetwork& network, std::vector<double>& out) const;
  void add_nodes(const OverlayNetwork& network, std::vector<double>& out) const;
  double startup() const;

  const OverlayRunOptions* options_;
  std::vector<LookupNote> notes_;
  std::size_t first_round_ = 0;
  NetworkCounters at_begin_;
  std::vector<std::uint64_t> load_at_begin_;
  std::vector<std::uint32_t> rounds_up_;
  std::uint64_t node_rounds_ = 0;
  std::uint64_t joins_ = 0;
  std::vector<double> of_network_;
};

}  // namespace fedge::sim
