#include "sim/energy/battery.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace fedge::sim {
namespace {

constexpr double kJoulesPerWattHour = 3600;
constexpr double kHoursPerDay = 24;
constexpr double kSecondsInAnHour = 3600;
constexpr Duration kAskAgain = std::chrono::hours(12);
// A battery with less is empty: consumption comes in whole microjoules.
constexpr double kRest = 1e-5;  // joules

}  // namespace

BatterySpec read_battery(config::Reader& section) {
  BatterySpec spec;
  spec.capacity = kJoulesPerWattHour *
                  section.number("capacity_wh", 0.0, {0.0, 1e6},
                                 "Energy of a full battery in watt-hours. 0: devices have no batteries. With "
                                 "batteries, a device whose battery is empty loses its power.");
  const std::vector<double> initial =
      section.numbers("initial", std::vector<double>{spec.initial_lowest, spec.initial_highest}, {0.0, 1.0},
                      "Lowest and highest level at the start, as fractions of the capacity. Each device's is "
                      "drawn uniformly between them.");
  if (initial.size() != 2 || initial[0] > initial[1])
    section.fail("initial", "must be two fractions in ascending order");
  else
    spec.initial_lowest = initial[0], spec.initial_highest = initial[1];
  spec.idle_watts = section.number("idle_watts", spec.idle_watts, {0.0, 1000.0},
                                   "Power that a device takes from its battery all the time, in watts.");
  spec.charge_watts = section.number("charge_watts", spec.charge_watts, {0.0, 1000.0},
                                     "Power with which a battery is charged, in watts.");
  spec.charge_from = section.number("charge_from", spec.charge_from, {0.0, kHoursPerDay},
                                    "Hour of the day at which charging begins.");
  spec.charge_to = section.number("charge_to", spec.charge_to, {0.0, kHoursPerDay},
                                  "Hour of the day at which charging ends; it may be on the next day.");
  spec.start_hour = section.number("start_hour", spec.start_hour, {0.0, kHoursPerDay},
                                   "Hour of the day at the start of the simulation.");
  spec.resume_at = section.number("resume_at", spec.resume_at, {0.001, 1.0},
                                  "Level from which a device without power works again.");
  return spec;
}

Batteries::Batteries(const BatterySpec& spec, std::size_t clients, const Rng& rng) : spec_(spec) {
  states_.reserve(clients);
  for (std::size_t client = 0; client < clients; ++client) {
    const double part = rng.fork("battery", client).uniform();
    states_.push_back(
        {spec.capacity * (spec.initial_lowest + (spec.initial_highest - spec.initial_lowest) * part), {}});
  }
}

bool Batteries::charging(Time now) const {
  const double hour = std::fmod(spec_.start_hour + to_seconds(now) / kSecondsInAnHour, kHoursPerDay);
  if (spec_.charge_from == spec_.charge_to) return false;
  if (spec_.charge_from < spec_.charge_to) return hour >= spec_.charge_from && hour < spec_.charge_to;
  return hour >= spec_.charge_from || hour < spec_.charge_to;
}

Time Batteries::next_change(Time now) const {
  const double hour = std::fmod(spec_.start_hour + to_seconds(now) / kSecondsInAnHour, kHoursPerDay);
  double soonest = kHoursPerDay;
  for (const double border : {spec_.charge_from, spec_.charge_to}) {
    const double hours = std::fmod(border - hour + 2 * kHoursPerDay, kHoursPerDay);
    if (hours > 0) soonest = std::min(soonest, hours);
  }
  // A nanosecond more, so that rounding cannot keep the time from passing the border.
  return now + seconds(soonest * kSecondsInAnHour) + Duration(1);
}

// One piece of time in which the power is constant.
void Batteries::pass(State& state, Time until, double watts) const {
  const Time end = std::min(until, next_change(state.at));
  const double charge = charging(state.at) ? spec_.charge_watts : 0;
  // A device without power consumes nothing.
  const double power = state.empty ? charge : charge - spec_.idle_watts - watts;
  const double border = state.empty ? spec_.resume_at * spec_.capacity : 0;
  const double after = state.joules + power * to_seconds(end - state.at);
  const bool crosses = state.empty ? after >= border : after <= border && power < 0;
  if (!crosses) {
    state = {std::min(after, spec_.capacity), end, state.empty};
    return;
  }
  // A nanosecond more, so that time passes whatever the rounding.
  const Time at = state.at + seconds(std::max(0.0, (border - state.joules) / power)) + Duration(1);
  state = {border, std::min(at, std::max(end, state.at + Duration(1))), !state.empty};
}

Batteries::State& Batteries::advance(ClientId client, Time now) {
  State& state = states_[client.value()];
  while (state.at < now) pass(state, now, 0);
  return state;
}

void Batteries::consume(ClientId client, double joules, Time now) {
  State& state = states_[client.value()];
  // As an even power since the last time, so that a battery that is being charged does not lose what it would
  // not have stored.
  if (state.at < now && !state.empty) {
    const double watts = joules / to_seconds(now - state.at);
    while (state.at < now && !state.empty) pass(state, now, watts);
  } else if (!state.empty) {
    state.joules -= joules;
  }
  advance(client, now);
  if (state.empty || state.joules > kRest) return;
  state.joules = 0;
  state.empty = true;
}

bool Batteries::powered(ClientId client, Time now) { return !advance(client, now).empty; }

double Batteries::level(ClientId client, Time now) { return advance(client, now).joules / spec_.capacity; }

Time Batteries::changes(ClientId client, Time now, double watts) const {
  State state = states_[client.value()];
  const bool before = state.empty;
  while (state.empty == before && state.at < now + kAskAgain) pass(state, now + kAskAgain, watts);
  return state.at;
}

}  // namespace fedge::sim
