// Attacks: what hostile clients of a simulation submit instead of their honest updates. Used only to test and
// compare rules; the daemons contain none of it. Colluders know each other and, if the attack needs them, all
// honest updates g_i of the round, with mean mu and per-coordinate standard deviation sd (over n - 1). n
// clients are in the round, m of them hostile.
//   sign_flip    -strength * its own update (strength 1)
//   gaussian     N(0, strength^2) in every coordinate (strength 10)
//   label_flip   an honest update of data whose labels y are classes - 1 - y
//   alie         mu - z sd, z = strength or Phi^-1((n - m - s) / (n - m)) with s = floor(n / 2 + 1) - m, at
//                least 0.3 ("A little is enough"; Baruch et al., NeurIPS 2019)
//   ipm          -strength * mu (strength 0.5; inner product manipulation, Xie et al., UAI 2019)
//   min_max      mu - gamma sd with the largest gamma that leaves it no farther from any honest update than
//                those are from each other (Shejwalkar and Houmansadr, NDSS 2021)
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/config/reader.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/rng.h"

namespace fedge::sim {

enum class AttackKind { kNone, kSignFlip, kGaussian, kLabelFlip, kAlie, kIpm, kMinMax };

struct AttackSpec {
  AttackKind kind = AttackKind::kNone;
  double fraction = 0.2;  // share of hostile clients, rounded down; drawn from the run's seed
  double strength = 0;    // 0: the attack's default

  // True if the attack is computed from the round's honest updates.
  bool needs_honest() const {
    return kind == AttackKind::kAlie || kind == AttackKind::kIpm || kind == AttackKind::kMinMax;
  }
};

// Reads [simulation.attack]; errors stay in the reader.
AttackSpec read_attack(config::Reader& section);

// Marks each client as hostile or honest.
std::vector<bool> choose_attackers(const AttackSpec& spec, std::size_t clients, const Rng& rng);

// The z of ALIE for n clients of which m are hostile.
double alie_z(std::size_t n, std::size_t m);

// Full-coverage updates, in memory or stored.
using Updates = std::vector<std::shared_ptr<const aggregation::UpdateValues>>;

// Replaces a hostile client's honest `update` by the attack. `honest` holds the round's honest updates in
// client order (read only if needs_honest(); without any, `update` stays honest). `hostile` is the number of
// colluders, `rng` this client's stream. label_flip does nothing here: the trainer implements it. Errors are
// those of reading `honest`. Memory: 16 bytes a parameter, and a piece of each honest update.
Result<void> attack(const AttackSpec& spec, const Updates& honest, std::size_t hostile, Rng rng,
                    std::span<float> update);

}  // namespace fedge::sim
