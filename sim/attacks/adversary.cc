#include "sim/attacks/adversary.h"

#include <algorithm>
#include <span>

namespace fedge::sim {

void Adversary::assigned(ClientId client, TrainingJob job) {
  if (!spec_.needs_honest()) return;
  in_round_.insert(client);
  // Starts training at once: the colluders need this update, however slow its device and link are.
  if (!hostile(client)) pool_.enqueue(client, std::move(job));
}

Result<void> Adversary::corrupt(ClientId client, TaskId task) {
  Updates honest;
  std::size_t colluders = 0;
  for (const ClientId other : in_round_) {
    if (hostile(other)) {
      ++colluders;
      continue;
    }
    if (!honest_.contains(other) && pool_.has(other, task)) {
      FEDGE_TRY(update, pool_.result(other));
      if (update->values) honest_[other] = update->values;
    }
    if (const auto known = honest_.find(other); known != honest_.end()) honest.push_back(known->second);
  }
  return pool_.change(client, [&](std::span<float> update) {
    return attack(spec_, honest, colluders, rng_.fork("attack", task.round.value(), client.value()), update);
  });
}

void Adversary::taken(ClientId client, const std::shared_ptr<const aggregation::UpdateValues>& values) {
  if (spec_.needs_honest() && !hostile(client)) honest_[client] = values;
}

void Adversary::round_closed() {
  in_round_.clear();
  honest_.clear();
}

}  // namespace fedge::sim
