#include "sim/availability/day_clock.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fedge::sim {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;
// Steps of an hour in the numerical sum over the distribution of stays.
constexpr int kSteps = 20;
// Iterations of Richardson and Lucy's method; more gain nothing.
constexpr int kIterations = 2000;

void divide_by_mean(Hours& hours) {
  const double mean = std::accumulate(hours.begin(), hours.end(), 0.0) / 24;
  for (double& hour : hours) hour /= mean;
}

// spread[d]: for a device that comes up at a uniform moment of hour h, the share of its time up that falls
// into hour h + d of the day.
Hours spread_of(const CutLogNormal& up) {
  Hours spread{};
  for (int step = 0;; ++step) {
    const double hours = (step + 0.5) / kSteps;  // time up so far
    const double still_up = up.beyond(hours * kHour);
    if (still_up <= 0 || hours > 24 * 366) break;
    const double into = hours - std::floor(hours);
    const auto whole = static_cast<std::size_t>(hours);
    spread[whole % 24] += still_up * (1 - into);
    spread[(whole + 1) % 24] += still_up * into;
  }
  const double sum = std::accumulate(spread.begin(), spread.end(), 0.0);
  if (sum <= 0) return {1};  // up for less than a step
  for (double& share : spread) share /= sum;
  return spread;
}

Hours spread_out(const Hours& starts, const Hours& spread) {
  Hours up{};
  for (std::size_t h = 0; h < 24; ++h)
    for (std::size_t d = 0; d < 24; ++d) up[(h + d) % 24] += starts[h] * spread[d];
  return up;
}

}  // namespace

// Stays of many hours smear and delay a day's profile. Richardson and Lucy's iteration (1972, 1974) finds the
// starts that give the wanted profile after this; it keeps them positive.
DayClock::DayClock(const Hours& wanted, const CutLogNormal& up) {
  Hours goal = wanted;
  divide_by_mean(goal);
  const Hours spread = spread_of(up);
  speed_.fill(1);
  for (int i = 0; i < kIterations; ++i) {
    const Hours reached = spread_out(speed_, spread);
    Hours correction{};
    for (std::size_t h = 0; h < 24; ++h)
      for (std::size_t d = 0; d < 24; ++d) {
        const std::size_t at = (h + d) % 24;
        if (reached[at] > 0) correction[h] += spread[d] * goal[at] / reached[at];
      }
    for (std::size_t h = 0; h < 24; ++h) speed_[h] *= correction[h];
  }
  divide_by_mean(speed_);
  expected_ = spread_out(speed_, spread);
  for (std::size_t h = 0; h < 24; ++h) shown_[h + 1] = shown_[h] + kHour * speed_[h];
}

double DayClock::after(double from, double seconds) const {
  const double day = std::floor(from / kDay);
  const double since_midnight = from - day * kDay;
  const auto hour = std::min<std::size_t>(static_cast<std::size_t>(since_midnight / kHour), 23);
  const double now = shown_[hour] + speed_[hour] * (since_midnight - kHour * static_cast<double>(hour));
  // Clock reading at the result, over all days; rounding of shown_[24] must not lose days.
  const double then = now + seconds;
  const double days = std::floor(then / shown_[24]);
  const double rest = then - days * shown_[24];
  std::size_t h = 0;
  while (h < 23 && shown_[h + 1] < rest) ++h;
  const double into = speed_[h] > 0 ? (rest - shown_[h]) / speed_[h] : 0;
  return std::max(from, (day + days) * kDay + kHour * static_cast<double>(h) + std::min(into, kHour));
}

double DayClock::expected(double hour) const {
  return expected_[std::min<std::size_t>(static_cast<std::size_t>(hour), 23)];
}

}  // namespace fedge::sim
