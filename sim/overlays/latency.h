// Latency: delivery time of a message. Nodes are in the cloud (10 %), at the edge (40 %) or devices (50 %).
// The one-way delay is the base of the two tiers times a log-normal factor of median 1 and sigma 0.3. The
// factor is a uniform draw from 4096 quantiles: a draw costs 32 random bits and a look-up, and no delay
// exceeds three times its base. A node's tier is a function of seed and address. Use it only on the network's
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "core/time.h"
#include "dht/overlays/id.h"

namespace fedge::sim {

enum class Tier : std::uint8_t { kCloud, kEdge, kDevice };

class Latency {
 public:
  Latency(std::size_t nodes, const Rng& rng);

  // The delay without the random factor.
  Duration base(dht::Address a, dht::Address b) const { return bases_[pair(tiers_[a], tiers_[b])]; }
  Duration draw(dht::Address a, dht::Address b);

 private:
  static constexpr std::size_t kTiers = 3;
  static std::size_t pair(Tier a, Tier b) {
    return static_cast<std::size_t>(a) * kTiers + static_cast<std::size_t>(b);
  }

  std::array<Duration, kTiers * kTiers> bases_{};  // by pair of tiers
  std::vector<Tier> tiers_;
  std::vector<double> factors_;
  Rng rng_;
};

}  // namespace fedge::sim
