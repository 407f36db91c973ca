#include "sim/energy/energy_meter.h"

#include <algorithm>
#include <utility>

namespace fedge::sim {
namespace {

EnergyUse use_of(std::size_t activity) {
  constexpr std::array kUses = {EnergyUse::kComputing, EnergyUse::kComputing, EnergyUse::kSending,
                                EnergyUse::kReceiving};
  return kUses.at(activity);
}

}  // namespace

void EnergyMeter::add(ClientId client, EnergyUse use, double watts, Duration time) {
  const std::int64_t microjoules = EnergyLedger::microjoules(watts, time);
  if (between_rounds_)
    waiting_[client][use] += microjoules;
  else
    ledger_.add(client, use, microjoules);
  if (listener_ != nullptr) listener_->consumed(client, joules_of(microjoules));
}

void EnergyMeter::begin_round() {
  if (!std::exchange(between_rounds_, false)) return;
  for (const auto& [client, uses] : waiting_)
    for (const auto& [use, microjoules] : uses) ledger_.add(client, use, microjoules);
  waiting_.clear();
}

// The power of everything that is open, as if it had begun.
void EnergyMeter::tell_draw(ClientId client) const {
  if (listener_ == nullptr) return;
  const auto found = open_.find(client);
  double watts = 0;
  if (found != open_.end()) {
    watts = spec_.awake_watts;
    for (const auto& open : found->second.activities) watts += open ? open->watts : 0;
  }
  listener_->draws(client, watts);
}

void EnergyMeter::begin(ClientId client, Activity activity, double watts, Time from, Time until) {
  Device& device = open_[client];
  // One of the same kind ends now, whatever else is open.
  auto& former = device.activities[static_cast<std::size_t>(activity)];
  if (former && std::min(from, former->until) > former->from)
    add(client, use_of(static_cast<std::size_t>(activity)), former->watts,
        std::min(from, former->until) - former->from);
  former.reset();
  const bool asleep =
      std::ranges::none_of(device.activities, [](const auto& open) { return open.has_value(); });
  if (asleep) device.awake = from;
  device.awake = std::min(device.awake, from);
  device.activities[static_cast<std::size_t>(activity)] = Open{watts, from, until};
  tell_draw(client);
}

// Charges every open activity up to this time.
void EnergyMeter::charge(ClientId client, Device& device, Time now) {
  Time last{};  // the end of the last activity
  for (std::size_t a = 0; a < device.activities.size(); ++a) {
    auto& open = device.activities[a];
    if (!open) continue;
    last = std::max(last, open->until);
    const Time until = std::min(now, open->until);
    if (until <= open->from) continue;
    add(client, use_of(a), open->watts, until - open->from);
    open->from = until;
  }
  const Time until = std::min(now, last);
  if (until <= device.awake) return;
  add(client, EnergyUse::kAwake, spec_.awake_watts, until - device.awake);
  device.awake = until;
}

void EnergyMeter::end(ClientId client, Activity activity, Time at) {
  const auto found = open_.find(client);
  if (found == open_.end()) return;
  auto& open = found->second.activities[static_cast<std::size_t>(activity)];
  if (!open) return;
  charge(client, found->second, std::min(at, open->until));
  open.reset();
  const bool asleep =
      std::ranges::none_of(found->second.activities, [](const auto& other) { return other.has_value(); });
  if (asleep) open_.erase(found);
  tell_draw(client);
}

void EnergyMeter::message(ClientId client, EnergyUse use, Duration time) {
  add(client, use, use == EnergyUse::kSending ? spec_.send_watts : spec_.receive_watts, time);
}

void EnergyMeter::settle(ClientId client, Time now) {
  if (const auto found = open_.find(client); found != open_.end()) charge(client, found->second, now);
}

void EnergyMeter::settle(Time now) {
  for (auto& [client, device] : open_) charge(client, device, now);
}

std::int64_t EnergyMeter::reading(ClientId client, Time now) {
  settle(client, now);
  std::int64_t sum = ledger_.device(client);
  if (const auto waiting = waiting_.find(client); waiting != waiting_.end())
    for (const auto& [use, microjoules] : waiting->second) sum += microjoules;
  return sum;
}

void EnergyMeter::task_begins(ClientId client, Time now) {
  begin_round();
  begun_[client.value()] = reading(client, now);
}

void EnergyMeter::task_ends(ClientId client, Time now) {
  const double joules = joules_of(reading(client, now) - begun_[client.value()]);
  round_.largest_task = std::max(round_.largest_task, joules);
  round_.task_sum += joules;
  ++round_.tasks;
}

void EnergyMeter::training_begins(ClientId client, Time now) {
  trained_[client.value()] = reading(client, now);
}

void EnergyMeter::training_ends(ClientId client, Time now) {
  training_[client.value()] = reading(client, now) - trained_[client.value()];
}

EnergyMeter::Round EnergyMeter::take_round() {
  Round round = std::exchange(round_, {});
  round.by_use = ledger_.take();
  between_rounds_ = true;
  return round;
}

}  // namespace fedge::sim
