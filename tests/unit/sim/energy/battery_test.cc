#include "sim/energy/battery.h"

#include <doctest/doctest.h>

namespace fedge::sim {
namespace {

constexpr Time at_hour(double hours) { return Time(seconds(hours * 3600)); }

BatterySpec spec() {
  BatterySpec spec;
  spec.capacity = 36'000;  // 10 Wh
  spec.initial_lowest = spec.initial_highest = 0.5;
  spec.idle_watts = 1;
  spec.charge_watts = 3;
  spec.charge_from = 22;
  spec.charge_to = 4;
  spec.start_hour = 20;
  spec.resume_at = 0.2;
  return spec;
}

}  // namespace

TEST_CASE("battery: a night worked out by hand") {
  Batteries batteries(spec(), 1, Rng(1));
  const ClientId client(0);
  CHECK(batteries.level(client, at_hour(0)) == doctest::Approx(0.5));
  CHECK(batteries.level(client, at_hour(2)) == doctest::Approx(0.3));  // 22 h: 2 Wh less
  CHECK(batteries.level(client, at_hour(4)) == doctest::Approx(0.7));  // charged with 3 W - 1 W
  CHECK(batteries.level(client, at_hour(8)) == doctest::Approx(1.0));  // full at 1:30, kept full until 4 h
  CHECK(batteries.level(client, at_hour(9)) == doctest::Approx(0.9));
}

TEST_CASE("battery: levels do not depend on how often they are read") {
  Batteries seldom(spec(), 1, Rng(1));
  Batteries often(spec(), 1, Rng(1));
  for (int minute = 0; minute <= 60 * 50; ++minute) often.level(ClientId(0), at_hour(minute / 60.0));
  CHECK(often.level(ClientId(0), at_hour(50)) == doctest::Approx(seldom.level(ClientId(0), at_hour(50))));
}

TEST_CASE("battery: an empty device has no power until it is charged to the level at which it resumes") {
  Batteries batteries(spec(), 1, Rng(1));
  const ClientId client(0);
  CHECK(batteries.powered(client, at_hour(0)));
  // With 9 W more than the idle power it is empty after half an hour.
  CHECK(to_seconds(batteries.changes(client, at_hour(0), 9)) == doctest::Approx(1800));
  batteries.consume(client, 9 * 1800, at_hour(0.5));
  CHECK_FALSE(batteries.powered(client, at_hour(0.5)));
  CHECK(batteries.level(client, at_hour(0.5)) == 0);
  // Charging begins at 22 h; 2 Wh take 40 minutes, because a device without power consumes nothing.
  const Time back = batteries.changes(client, at_hour(0.5), 0);
  CHECK(to_seconds(back) == doctest::Approx(2 * 3600 + 2400));
  CHECK_FALSE(batteries.powered(client, back - seconds(1)));
  CHECK(batteries.powered(client, back));
  CHECK(batteries.level(client, back) == doctest::Approx(0.2));
}

TEST_CASE("battery: a device at rest runs empty by its idle power alone") {
  BatterySpec never = spec();
  never.charge_watts = 0;
  Batteries batteries(never, 1, Rng(1));
  CHECK(to_seconds(batteries.changes(ClientId(0), at_hour(0), 0)) == doctest::Approx(5 * 3600));
  CHECK_FALSE(batteries.powered(ClientId(0), at_hour(5.01)));
  // It never changes again: the question is to be asked again later.
  CHECK(batteries.changes(ClientId(0), at_hour(6), 0) > at_hour(17));
  CHECK_FALSE(batteries.powered(ClientId(0), at_hour(1000)));
}

TEST_CASE("battery: what is consumed while it is charged does not empty a full battery") {
  BatterySpec full = spec();
  full.initial_lowest = full.initial_highest = 1;
  full.charge_from = 0;
  full.charge_to = 24;
  Batteries batteries(full, 1, Rng(1));
  // 1.9 W for an hour beside 1 W at rest, while 3 W are charged.
  batteries.consume(ClientId(0), 1.9 * 3600, at_hour(1));
  CHECK(batteries.level(ClientId(0), at_hour(1)) == doctest::Approx(1));
  batteries.consume(ClientId(0), 3 * 3600, at_hour(2));
  CHECK(batteries.level(ClientId(0), at_hour(2)) == doctest::Approx(0.9));
}

TEST_CASE("battery: first levels are drawn for each device, and each draw is its own") {
  BatterySpec range = spec();
  range.initial_lowest = 0.2;
  range.initial_highest = 0.6;
  Batteries batteries(range, 200, Rng(1));
  Batteries fewer(range, 10, Rng(1));
  double lowest = 1;
  double highest = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const double level = batteries.level(ClientId(i), Time());
    if (i < 10) CHECK(fewer.level(ClientId(i), Time()) == level);
    lowest = std::min(lowest, level);
    highest = std::max(highest, level);
  }
  CHECK(lowest >= 0.2);
  CHECK(lowest < 0.22);
  CHECK(highest <= 0.6);
  CHECK(highest > 0.58);
}

}  // namespace fedge::sim
