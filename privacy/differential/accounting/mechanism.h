// The mechanisms that can be accounted for. Each value describes one release. Noise is relative to the
// sensitivity, the largest change by one client, unless it is in grid units.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "core/result.h"
#include "privacy/differential/accounting/discrete_noise.h"
#include "privacy/differential/accounting/loss/loss_distribution.h"
#include "privacy/differential/accounting/rdp.h"
#include "privacy/differential/accounting/tree.h"

namespace fedge::privacy {

// Gaussian noise on a Poisson sample: each client is in the round with probability sampling_rate,
// independently.
struct GaussianMechanism {
  double sampling_rate = 1;
  double noise_multiplier = 1;  // standard deviation over L2 sensitivity
  bool operator==(const GaussianMechanism&) const = default;
};

// Laplace noise on a Poisson sample.
struct LaplaceMechanism {
  double sampling_rate = 1;
  double scale = 1;  // b over L1 sensitivity
  bool operator==(const LaplaceMechanism&) const = default;
};

// Gaussian noise on a cohort of fixed size drawn without replacement. It protects against replacing a client,
// so the noise multiplier is relative to twice the clipping norm.
struct FixedCohortMechanism {
  double sampling_rate = 1;  // cohort over population
  double noise_multiplier = 1;
  bool operator==(const FixedCohortMechanism&) const = default;
};

// Skellam noise in the sum of a Poisson sample, in grid units.
struct SkellamMechanism {
  double sampling_rate = 1;
  double variance = 1;
  GridSensitivity sensitivity;
  bool operator==(const SkellamMechanism&) const = default;
};

// Discrete Gaussian noise of every client in the sum of a Poisson sample, in grid units.
struct DistributedGaussianMechanism {
  double sampling_rate = 1;
  DistributedGaussian noise;
  GridSensitivity sensitivity;
  bool operator==(const DistributedGaussianMechanism&) const = default;
};

// Gaussian noise along trees. One value describes all releases of a training together.
struct TreeMechanism {
  double noise_multiplier = 1;
  Participation participation;
  bool operator==(const TreeMechanism&) const = default;
};

using Mechanism = std::variant<GaussianMechanism, LaplaceMechanism, FixedCohortMechanism, SkellamMechanism,
                               DistributedGaussianMechanism, TreeMechanism>;

// A validated mechanism, ready for composition.
struct Account {
  RdpCurve rdp;                   // curve of one release
  std::optional<NoisyStep> loss;  // empty: only the curve is known
  bool nothing = false;           // no client takes part: no cost
  bool everything = false;        // no noise: no finite bound
  bool replaces = false;          // protects against replacing a client instead of adding or removing one
};
// kInvalid if a parameter is wrong, for example "sampling rate: must be from 0 to 1, not 1.5".
Result<Account> make_account(const Mechanism& mechanism);

// The mechanism with another amount of noise: `noise` is its noise multiplier, scale, local sigma, or the
// square root of its variance.
Mechanism with_noise(Mechanism mechanism, double noise);

}  // namespace fedge::privacy
