#include "sim/energy/device_energy.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "aggregation/planners/levels.h"

namespace fedge::sim {

DeviceEnergy::DeviceEnergy(const EnergySpec& spec, TrainingWork work, bool slices, std::size_t clients,
                           const Rng& rng)
    : spec_(spec), work_(std::move(work)), slices_(slices), rng_(rng) {
  double shares = 0;
  for (const ClusterSpec& cluster : spec_.clusters) shares += cluster.share;
  std::vector<double> fractions;
  for (const ClusterSpec& cluster : spec_.clusters) {
    fractions.push_back(cluster.share / shares);
    DevicePower power = describe_cluster(cluster, spec_);
    // The rates of links belong to devices, not to clusters.
    power.send_bytes_per_second = power.receive_bytes_per_second = 1;
    laws_.emplace_back(power, PowerLaw::kAnalytical, PowerAnchor::kHighest);
    powers_.push_back(std::move(power));
  }
  const std::vector<std::size_t> counts = aggregation::level_counts(fractions, clients);
  for (std::size_t cluster = 0; cluster < counts.size(); ++cluster)
    cluster_.insert(cluster_.end(), counts[cluster], static_cast<std::uint8_t>(cluster));
  rng_.fork("clusters").shuffle(std::span(cluster_));
}

std::size_t DeviceEnergy::step(ClientId client, TaskId task, double hertz) const {
  const std::vector<double>& grid = power(client).hertz;
  if (hertz > 0) {
    const auto above = std::ranges::upper_bound(grid, hertz);
    return above == grid.begin() ? 0 : static_cast<std::size_t>(above - grid.begin()) - 1;
  }
  if (spec_.governor == Governor::kLowest) return 0;
  if (spec_.governor == Governor::kHighest) return grid.size() - 1;
  return rng_.fork("frequency", task.round.value(), client.value())
      .fork("track", task.track.value())
      .below(grid.size());
}

DeviceEnergy::Running DeviceEnergy::running(ClientId client, TaskId task, double hertz,
                                            const Coverage& part) const {
  const std::size_t chosen = step(client, task, hertz);
  const DevicePower& own = power(client);
  const double flops = slices_ && task.kind == TaskKind::kTraining ? work_.flops(part) : work_.whole();
  return {.hertz = own.hertz[chosen],
          .watts = laws_[cluster_[client.value()]].watts(chosen),
          .samples_per_second = own.hertz[chosen] / (own.cycles_per_flop * flops)};
}

double DeviceEnergy::fastest(ClientId client) const {
  return power(client).hertz.back() / (power(client).cycles_per_flop * work_.whole());
}

}  // namespace fedge::sim
