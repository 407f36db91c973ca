// Common shocks: in each slot a device of group g is up if it is up by itself (X, chance a) and its group is
// not struck (Z_g, chance z). Both are drawn for each slot. P(up) = a z; two devices of a group are
// correlated by a (1 - z) / (1 - a z), devices of different groups not at all.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/check.h"
#include "sim/availability/kinds.h"

namespace fedge::sim {
namespace {

class CommonShock final : public Availability {
 public:
  CommonShock(const AvailabilitySpec& spec, std::vector<std::uint32_t> group_of, const Rng& rng)
      : slot_(spec.slot), a_(spec.a), z_(spec.z), group_of_(std::move(group_of)), rng_(rng) {}

  Phase first(ClientId client) const override { return from_slot(client, 0); }
  Phase next(ClientId client, const Phase& phase) const override { return from_slot(client, phase.index); }
  std::uint32_t site(ClientId client) const override { return group_of_[client.value()]; }

 private:
  bool up(ClientId client, std::uint64_t slot) const {
    return rng_.fork("device", client.value(), slot).uniform() < a_ &&
           rng_.fork("group", group_of_[client.value()], slot).uniform() < z_;
  }

  Phase from_slot(ClientId client, std::uint64_t slot) const {
    Phase phase{.up = up(client, slot)};
    if (a_ * z_ == 1) return phase;
    phase.index = slot + 1;
    while (phase.index < slot + kLookAhead && up(client, phase.index) == phase.up) ++phase.index;
    if (static_cast<std::int64_t>(phase.index) <= kLastChange.time_since_epoch() / slot_)
      phase.until = Time(slot_ * static_cast<std::int64_t>(phase.index));
    return phase;
  }

  Duration slot_;
  double a_;
  double z_;
  std::vector<std::uint32_t> group_of_;  // for each client
  Rng rng_;
};

// The labels for which a client holds more than an even share of its samples, ascending.
std::vector<learn::Label> favoured_labels(const learn::Task& task, ClientId client) {
  const std::vector<std::uint64_t> held = task.label_counts(client);
  std::vector<learn::Label> favoured;
  for (std::size_t label = 0; label < held.size(); ++label)
    if (held[label] * held.size() > task.sample_count(client).value())
      favoured.push_back(static_cast<learn::Label>(label));
  return favoured;
}

std::vector<std::uint32_t> order_by_labels(const learn::Task& task) {
  std::vector<std::pair<std::vector<learn::Label>, std::uint32_t>> keys;
  for (std::uint32_t client = 0; client < task.clients(); ++client)
    keys.emplace_back(favoured_labels(task, ClientId(client)), client);
  std::sort(keys.begin(), keys.end());
  std::vector<std::uint32_t> order;
  for (const auto& [labels, client] : keys) order.push_back(client);
  return order;
}

std::vector<std::uint32_t> random_order(std::size_t clients, Rng rng) {
  std::vector<std::uint32_t> order(clients);
  std::iota(order.begin(), order.end(), 0U);
  rng.shuffle(std::span(order));
  return order;
}

}  // namespace

Result<std::unique_ptr<Availability>> make_common_shock(const AvailabilitySpec& spec, Population population,
                                                        const Rng& rng) {
  const std::size_t clients = population.clients;
  if (spec.groups > clients)
    return invalid("simulation.availability.groups is " + std::to_string(spec.groups) +
                   ", but the run has only " + std::to_string(clients) + " clients");
  FEDGE_CHECK(!spec.tied_to_labels || population.task != nullptr, "labels come from a task");
  const Rng own = rng.fork("common-shock");
  const std::vector<std::uint32_t> order =
      spec.tied_to_labels ? order_by_labels(*population.task) : random_order(clients, own.fork("groups"));
  std::vector<std::uint32_t> group_of(clients);
  for (std::size_t place = 0; place < clients; ++place)
    group_of[order[place]] = static_cast<std::uint32_t>(place * spec.groups / clients);
  return std::unique_ptr<Availability>(std::make_unique<CommonShock>(spec, std::move(group_of), own));
}

}  // namespace fedge::sim
