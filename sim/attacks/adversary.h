// Adversary: the hostile clients of a simulation. It knows who they are, keeps the honest updates of the
// round where the attack is made of them, and replaces what a hostile client has trained. Does nothing
// at no cost in a run without an attack.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/attacks/attacks.h"
#include "sim/training_pool.h"

namespace fedge::sim {

class Adversary {
 public:
  // `rng` is the run's root stream; `pool` must outlive it.
  Adversary(const AttackSpec& spec, std::size_t clients, const Rng& rng, TrainingPool& pool)
      : spec_(spec), rng_(rng), pool_(pool), hostile_(choose_attackers(spec, clients, rng)) {}

  bool hostile(ClientId client) const { return hostile_[client.value()]; }
  bool flips_labels(ClientId client) const { return spec_.kind == AttackKind::kLabelFlip && hostile(client); }
  // This client has got work in the round.
  void assigned(ClientId client, TrainingJob job);
  // The computed update of a hostile client becomes the attack. The error is the pool's.
  Result<void> corrupt(ClientId client, TaskId task);
  // An update leaves the pool.
  void taken(ClientId client, const std::shared_ptr<const aggregation::UpdateValues>& values);
  void round_closed();

 private:
  AttackSpec spec_;
  Rng rng_;
  TrainingPool& pool_;
  std::vector<bool> hostile_;  // for each client
  // With work in this round; this and what follows only if the attack needs it.
  std::set<ClientId> in_round_;
  // Their updates, as far as they are known.
  std::map<ClientId, std::shared_ptr<const aggregation::UpdateValues>> honest_;
};

}  // namespace fedge::sim
