// EnergyLedger: the energy that virtual devices consume, in whole microjoules, so that sums do not depend on
// their order: the devices' totals and the rounds' totals both add up exactly to the run's total. One thread.
// Memory: 8 bytes a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace fedge::sim {

// What energy is consumed for.
enum class EnergyUse { kComputing, kSending, kReceiving, kAwake };
inline constexpr std::size_t kEnergyUses = 4;

class EnergyLedger {
 public:
  using ByUse = std::array<std::int64_t, kEnergyUses>;  // microjoules

  explicit EnergyLedger(std::size_t devices) : devices_(devices) {}

  // watts * time, rounded.
  static std::int64_t microjoules(double watts, Duration time);
  void add(ClientId client, EnergyUse use, std::int64_t microjoules);

  std::int64_t device(ClientId client) const { return devices_[client.value()]; }
  const std::vector<std::int64_t>& devices() const { return devices_; }
  const ByUse& total() const { return total_; }
  // Returns what was added since the last call.
  ByUse take();

 private:
  std::vector<std::int64_t> devices_;
  ByUse total_{};
  ByUse taken_{};
};

// Jain's fairness index (sum x)^2 / (n sum x^2) of the devices that have consumed energy; NaN if there are
// none.
double energy_fairness(const EnergyLedger& ledger);

inline double joules_of(std::int64_t microjoules) { return static_cast<double>(microjoules) * 1e-6; }

}  // namespace fedge::sim
