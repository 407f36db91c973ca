// Gilbert-Elliott: each device is a two-state Markov chain on slots (Gilbert, Bell System Technical Journal
// 39, 1960; Elliott, 42, 1963). Run lengths are geometric; each run is one draw.
#include <cmath>

#include "sim/availability/kinds.h"

namespace fedge::sim {
namespace {

class GilbertElliott final : public Availability {
 public:
  GilbertElliott(const AvailabilitySpec& spec, const Rng& rng)
      : slot_(spec.slot), p_up_down_(spec.p_up_down), p_down_up_(spec.p_down_up), rng_(rng) {}

  Phase first(ClientId client) const override {
    const double stationary = p_down_up_ / (p_up_down_ + p_down_up_);
    const bool up = rng_.fork("first", client.value()).uniform() < stationary;
    // The rest of a geometric run is distributed like a whole one.
    return run(client, {.up = up, .index = 0}, Time{});
  }

  Phase next(ClientId client, const Phase& phase) const override {
    return run(client, {.up = !phase.up, .index = phase.index + 1}, *phase.until);
  }

 private:
  Phase run(ClientId client, Phase phase, Time from) const {
    const double p = phase.up ? p_up_down_ : p_down_up_;
    if (p == 0) return phase;
    const double u = rng_.fork("run", client.value(), phase.index).uniform();
    const double more_slots = std::floor(std::log1p(-u) / std::log1p(-p));
    if (more_slots < static_cast<double>((kLastChange - from) / slot_))
      phase.until = from + slot_ * (1 + static_cast<std::int64_t>(more_slots));
    return phase;
  }

  Duration slot_;
  double p_up_down_;
  double p_down_up_;
  Rng rng_;
};

}  // namespace

std::unique_ptr<Availability> make_gilbert_elliott(const AvailabilitySpec& spec, const Rng& rng) {
  return std::make_unique<GilbertElliott>(spec, rng.fork("gilbert-elliott"));
}

}  // namespace fedge::sim
