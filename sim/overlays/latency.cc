#include "sim/overlays/latency.h"

#include <algorithm>
#include <cmath>

#include "sim/availability/normal.h"

namespace fedge::sim {
namespace {

constexpr std::uint64_t kQuantiles = 4096;
constexpr double kSigma = 0.3;
constexpr double kCloud = 0.1;
constexpr double kEdge = 0.4;

Duration base_of(Tier a, Tier b) {
  const auto [nearer, farther] = std::minmax(a, b);
  if (farther == Tier::kDevice) return std::chrono::milliseconds(60);
  if (farther == Tier::kCloud) return std::chrono::milliseconds(20);
  return std::chrono::milliseconds(nearer == Tier::kCloud ? 30 : 40);
}

}  // namespace

Latency::Latency(std::size_t nodes, const Rng& rng) : rng_(rng.fork("overlay latency")) {
  for (std::size_t node = 0; node < nodes; ++node) {
    const double draw = rng.fork("overlay tier", node).uniform();
    tiers_.push_back(draw < kCloud ? Tier::kCloud : draw < kCloud + kEdge ? Tier::kEdge : Tier::kDevice);
  }
  for (const Tier a : {Tier::kCloud, Tier::kEdge, Tier::kDevice})
    for (const Tier b : {Tier::kCloud, Tier::kEdge, Tier::kDevice}) bases_[pair(a, b)] = base_of(a, b);
  for (std::uint64_t i = 0; i < kQuantiles; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(kQuantiles);
    factors_.push_back(std::exp(kSigma * normal_quantile(p)));
  }
}

Duration Latency::draw(dht::Address a, dht::Address b) {
  const double factor = factors_[rng_.next_u32() % kQuantiles];
  return Duration(static_cast<std::int64_t>(static_cast<double>(base(a, b).count()) * factor));
}

}  // namespace fedge::sim
