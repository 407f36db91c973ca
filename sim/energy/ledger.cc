#include "sim/energy/ledger.h"

#include <cmath>
#include <limits>

namespace fedge::sim {

std::int64_t EnergyLedger::microjoules(double watts, Duration time) {
  return std::llround(watts * to_seconds(time) * 1e6);
}

void EnergyLedger::add(ClientId client, EnergyUse use, std::int64_t microjoules) {
  std::int64_t& device = devices_[client.value()];
  std::int64_t& total = total_[static_cast<std::size_t>(use)];
  std::int64_t more = 0;
  // 9 * 10^12 J are more than any fleet of devices has.
  if (__builtin_add_overflow(total, microjoules, &more)) return;
  total = more;
  device += microjoules;
}

EnergyLedger::ByUse EnergyLedger::take() {
  ByUse since{};
  for (std::size_t use = 0; use < kEnergyUses; ++use) since[use] = total_[use] - taken_[use];
  taken_ = total_;
  return since;
}

double energy_fairness(const EnergyLedger& ledger) {
  double sum = 0;
  double squares = 0;
  std::size_t count = 0;
  for (const std::int64_t microjoules : ledger.devices()) {
    if (microjoules == 0) continue;
    const double joules = joules_of(microjoules);
    sum += joules;
    squares += joules * joules;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : sum * sum / (static_cast<double>(count) * squares);
}

}  // namespace fedge::sim
