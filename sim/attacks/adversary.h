// Adversary: the hostile clients of a simulation. It selects them, collects the round's honest updates if the
// attack needs them, and replaces the trained updates of hostile clients. Costs nothing in a run without an
// attack.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/attacks/attacks.h"
#include "sim/training/training_pool.h"

namespace fedge::sim {

class Adversary {
 public:
  // `rng` is the run's root stream; `pool` must outlive it.
  Adversary(const AttackSpec& spec, std::size_t clients, const Rng& rng, TrainingPool& pool)
      : spec_(spec), rng_(rng), pool_(pool), hostile_(choose_attackers(spec, clients, rng)) {}

  bool hostile(ClientId client) const { return hostile_[client.value()]; }
  bool flips_labels(ClientId client) const { return spec_.kind == AttackKind::kLabelFlip && hostile(client); }
  // Records that this client has a task in the round.
  void assigned(ClientId client, TrainingJob job);
  // Replaces the computed update of a hostile client by the attack. Errors are the pool's.
  Result<void> corrupt(ClientId client, TaskId task);
  // Records an update that leaves the pool.
  void taken(ClientId client, const std::shared_ptr<const aggregation::UpdateValues>& values);
  void round_closed();

 private:
  AttackSpec spec_;
  Rng rng_;
  TrainingPool& pool_;
  std::vector<bool> hostile_;  // for each client
  // Clients with a task in this round. This member and the next are used only if the attack needs honest
  // updates.
  std::set<ClientId> in_round_;
  // Honest updates of the round known so far.
  std::map<ClientId, std::shared_ptr<const aggregation::UpdateValues>> honest_;
};

}  // namespace fedge::sim
