// Compares the diurnal generator with measurements on phones (docs/algorithms/availability.md).
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "sim/availability/availability.h"
#include "sim/availability/day_clock.h"
#include "sim/availability/log_normal.h"

using namespace fedge;
using sim::AvailabilityKind;
using sim::AvailabilitySpec;
using sim::CutLogNormal;
using sim::Phase;

namespace {

constexpr double kDay = 86'400;
// Measured availability in percent, by hour of the trace's clock.
constexpr std::array<double, 24> kMeasured = {10.6, 11.7, 12.9, 13.5, 13.7, 13.4, 12.2, 11.1,
                                              10.0, 8.9,  7.8,  6.9,  6.9,  6.5,  6.6,  7.0,
                                              7.6,  8.0,  8.9,  7.7,  6.9,  7.3,  8.7,  9.8};

struct Observed {
  std::array<double, 24> by_hour{};  // fraction of the time that phones are up
  double mean = 0;
  std::vector<double> by_phone;  // sorted
};

// Observes all phones for this many days from time 0 on.
Observed observe(const AvailabilitySpec& spec, std::uint32_t phones, int days) {
  const auto availability = sim::make_availability(spec, {phones, nullptr}, Rng(11));
  REQUIRE(availability);
  Observed seen;
  for (std::uint32_t c = 0; c < phones; ++c) {
    double from = 0;
    double up = 0;
    for (Phase phase = (*availability)->first(ClientId(c));;
         phase = (*availability)->next(ClientId(c), phase)) {
      const double end = std::min(phase.until ? to_seconds(*phase.until) : 1e12, days * kDay);
      for (double at = from; phase.up && at < end;) {
        const double hour = std::floor(at / 3600);
        const double until = std::min(end, (hour + 1) * 3600);
        seen.by_hour[static_cast<std::size_t>(hour) % 24] += until - at;
        up += until - at;
        at = until;
      }
      from = end;
      if (end >= days * kDay) break;
    }
    seen.by_phone.push_back(up / (days * kDay));
  }
  for (double& hour : seen.by_hour) hour /= 3600.0 * phones * days;
  seen.mean = std::accumulate(seen.by_hour.begin(), seen.by_hour.end(), 0.0) / 24;
  std::sort(seen.by_phone.begin(), seen.by_phone.end());
  return seen;
}

}  // namespace

TEST_CASE("cut log-normal: quantiles, mean and tail are those of a numeric integration") {
  const CutLogNormal lengths({.mu = 2, .sigma = 1.5, .longest = 50});
  // Midpoint rule over the logarithm, far into the lower tail.
  double mass = 0;
  double sum = 0;
  double below_7 = 0;
  double squares = 0;
  const double step = 1e-4;
  for (double x = -10 + step / 2; x < std::log(50); x += step) {
    const double density = std::exp(-0.5 * (x - 2) * (x - 2) / 2.25) * step;
    mass += density;
    sum += density * std::exp(x);
    squares += density * std::exp(2 * x);
    if (x < std::log(7)) below_7 += density;
  }
  CHECK(lengths.mean() == doctest::Approx(sum / mass).epsilon(1e-4));
  CHECK(lengths.beyond(7) == doctest::Approx(1 - below_7 / mass).epsilon(1e-3));
  CHECK(lengths.beyond(0) == 1);
  CHECK(lengths.beyond(50) == 0);
  CHECK(lengths.draw(below_7 / mass) == doctest::Approx(7).epsilon(1e-3));
  CHECK(lengths.draw(0) == 0);
  // A random time falls into an interval with a probability proportional to its length. The remaining length
  // is therefore E[x^2] / 2 E[x] on average.
  Rng rng(3);
  double rest = 0;
  for (int i = 0; i < 200'000; ++i) rest += lengths.draw_rest(rng.uniform(), rng.uniform());
  CHECK(rest / 200'000 == doctest::Approx(squares / (2 * sum)).epsilon(0.01));

  const CutLogNormal fixed({.mu = 2, .sigma = 0, .longest = 50});
  CHECK(fixed.draw(0) == doctest::Approx(std::exp(2)));
  CHECK(fixed.draw(0.999) == doctest::Approx(std::exp(2)));
  CHECK(fixed.mean() == doctest::Approx(std::exp(2)));
}

TEST_CASE("day clock: with equal hours it is an ordinary clock, and a day of it is always a day") {
  const CutLogNormal short_stays({.mu = 1, .sigma = 0, .longest = 50});
  sim::Hours hours;
  hours.fill(3);
  const sim::DayClock plain(hours, short_stays);
  CHECK(plain.after(0, 5000) == doctest::Approx(5000));
  CHECK(plain.after(80'000, 300'000) == doctest::Approx(380'000));
  hours[5] = 30;
  hours[6] = 0;
  const sim::DayClock uneven(hours, short_stays);
  for (const double from : {0.0, 20'000.0, 21'600.0, 86'399.0, 5e8})
    CHECK(uneven.after(from, 7 * kDay) == doctest::Approx(from + 7 * kDay).epsilon(1e-9));
}

TEST_CASE("day clock: gaps end in the hours that are asked for") {
  const CutLogNormal short_stays({.mu = 1, .sigma = 0, .longest = 50});
  sim::Hours hours;
  hours.fill(1);
  hours[3] = 23;
  hours[4] = 0;
  const sim::DayClock clock(hours, short_stays);
  // A day has 22 + 23 + 0 parts of the clock: 23 pass in hour 3 and none in hour 4.
  CHECK(clock.after(3 * 3600, kDay * 22 / 45) == doctest::Approx((3 + 22.0 / 23) * 3600).epsilon(1e-6));
  CHECK(clock.after(3 * 3600, kDay * 23.5 / 45) == doctest::Approx(5.5 * 3600).epsilon(1e-6));
  CHECK(clock.after(4.5 * 3600, kDay / 45) == doctest::Approx(6 * 3600).epsilon(1e-6));
}

TEST_CASE("diurnal: the share of phones that are up follows the hours of the day as measured") {
  const Observed seen = observe({.kind = AvailabilityKind::kDiurnal}, 10'000, 5);
  CHECK(std::abs(seen.mean - 0.095) < 0.01);
  const double measured = std::accumulate(kMeasured.begin(), kMeasured.end(), 0.0) / 24;
  for (std::size_t h = 0; h < 24; ++h) {
    CAPTURE(h);
    const double ratio = (seen.by_hour[h] / seen.mean) / (kMeasured[h] / measured);
    CHECK(ratio > 0.88);
    CHECK(ratio < 1.12);
  }
}

TEST_CASE("diurnal: phones differ over five days as much as measured") {
  const Observed seen = observe({.kind = AvailabilityKind::kDiurnal}, 10'000, 5);
  const auto quantile = [&](double p) {
    return seen.by_phone[static_cast<std::size_t>(p * static_cast<double>(seen.by_phone.size()))];
  };
  // The measured quantiles are 0, 1.3, 5.5, 13 and 33 %.
  CHECK(quantile(0.05) == 0);
  CHECK(std::abs(quantile(0.25) - 0.013) < 0.006);
  CHECK(std::abs(quantile(0.5) - 0.055) < 0.015);
  CHECK(std::abs(quantile(0.75) - 0.13) < 0.025);
  CHECK(std::abs(quantile(0.95) - 0.33) < 0.05);
}

TEST_CASE("diurnal: the share is right from time 0 on, whatever hour that is") {
  // The measured minimum is at 13 h, the maximum at 4 h.
  AvailabilitySpec spec{.kind = AvailabilityKind::kDiurnal};
  const auto up_at_start = [&](double hour) {
    spec.start_hour = hour;
    const auto availability = sim::make_availability(spec, {20'000, nullptr}, Rng(2));
    int up = 0;
    for (std::uint32_t c = 0; c < 20'000; ++c) up += (*availability)->first(ClientId(c)).up ? 1 : 0;
    return up / 20'000.0;
  };
  CHECK(up_at_start(13) == doctest::Approx(0.065).epsilon(0.15));
  CHECK(up_at_start(4) == doctest::Approx(0.137).epsilon(0.15));
  CHECK(up_at_start(24) == up_at_start(0));
  // A later start hour shifts the profile to earlier hours of the run.
  spec.start_hour = 0;
  const Observed from_0 = observe(spec, 10'000, 2);
  spec.start_hour = 6;
  const Observed from_6 = observe(spec, 10'000, 2);
  for (std::size_t h = 0; h < 24; ++h)
    CHECK(from_6.by_hour[h] == doctest::Approx(from_0.by_hour[(h + 6) % 24]).epsilon(0.15));
}
