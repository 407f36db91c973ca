// Diurnal: availability of phones that must be idle, charging and on Wi-Fi. Log-normal stays and gaps
// alternate. Gaps run on a DayClock, so that they end in the hours when phones are usually charged.
#include <algorithm>
#include <cmath>

#include "sim/availability/day_clock.h"
#include "sim/availability/kinds.h"
#include "sim/availability/log_normal.h"

namespace fedge::sim {
namespace {

constexpr double kSecondsPerHour = 3600;
// Resolution of the measurements; it also bounds the number of changes of a device in a run.
constexpr double kShortest = 1;

class Diurnal final : public Availability {
 public:
  Diurnal(const AvailabilitySpec& spec, const Rng& rng)
      : up_(spec.up),
        down_(spec.down),
        share_up_(up_.mean() / (up_.mean() + down_.mean())),
        clock_(spec.hours, up_),
        start_hour_(spec.start_hour < 24 ? spec.start_hour : 0),
        rng_(rng) {}

  Phase first(ClientId client) const override {
    Rng draws = rng_.fork("first", client.value());
    const bool up = draws.uniform() < share_up_ * clock_.expected(start_hour_);
    const double length = draws.uniform();
    const double moment = draws.uniform();
    return ending({.up = up}, Time{}, (up ? up_ : down_).draw_rest(length, moment));
  }

  Phase next(ClientId client, const Phase& phase) const override {
    const bool up = !phase.up;
    const double u = rng_.fork("interval", client.value(), phase.index).uniform();
    return ending({.up = up, .index = phase.index + 1}, *phase.until, (up ? up_ : down_).draw(u));
  }

 private:
  Phase ending(Phase phase, Time from, double length) const {
    const double begin = to_seconds(from);
    const double midnight = start_hour_ * kSecondsPerHour;
    const double on_clock = phase.up ? begin + length : clock_.after(begin + midnight, length) - midnight;
    const double end = std::max(on_clock, begin + kShortest);
    if (end < to_seconds(kLastChange)) phase.until = Time(seconds(end));
    return phase;
  }

  CutLogNormal up_;
  CutLogNormal down_;
  double share_up_;  // share of the time
  DayClock clock_;
  double start_hour_;
  Rng rng_;
};

}  // namespace

std::unique_ptr<Availability> make_diurnal(const AvailabilitySpec& spec, const Rng& rng) {
  return std::make_unique<Diurnal>(spec, rng.fork("diurnal"));
}

}  // namespace fedge::sim
