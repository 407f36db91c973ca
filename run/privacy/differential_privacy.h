// DifferentialPrivacySpec: section [differential_privacy] of a run file: how little a run's models may reveal
// about any one client, and which noise ensures this. Plain values; any thread.
#pragma once

#include <cstdint>
#include <limits>

#include "core/config/reader.h"
#include "privacy/differential/accounting/accountant.h"
#include "privacy/differential/local_privacy.h"
#include "privacy/differential/noise.h"

namespace fedge::run {

struct RunConfig;

// How an update is clipped to bound what one client may change.
enum class Clipping {
  kFlat,      // its Euclidean norm, to clipping_norm
  kPerLayer,  // the norm of each of its L layers, to clipping_norm / sqrt(L)
  kAdaptive,  // as kFlat, with a norm that follows a quantile of the clients' (Andrew et al., NeurIPS 2021)
};

struct DifferentialPrivacySpec {
  enum class Kind { kNone, kCentral, kDistributed, kTree, kLocal };
  Kind kind = Kind::kNone;
  bool on() const { return kind != Kind::kNone; }
  // True if the guarantee covers the sums, whichever party adds the noise; false: it covers every single
  // update.
  bool of_sums() const { return on() && kind != Kind::kLocal; }
  // The kinds of sampler and aggregator for which the guarantee is known, for a run file that names none.
  const char* implied_sampler() const { return kind == Kind::kCentral ? "poisson" : ""; }
  const char* implied_aggregator() const { return on() ? "uniform_mean" : ""; }

  Clipping clipping = Clipping::kFlat;
  double clipping_norm = 1;  // kAdaptive: of the first round
  // kAdaptive: the share of updates that should not be clipped, the rate at which the norm adapts, and the
  // standard deviation of the noise on the count of unclipped updates (sigma_b of the paper).
  double target_quantile = 0.5;
  double clipping_rate = 0.2;
  double count_noise = 1;

  privacy::NoiseKind noise = privacy::NoiseKind::kGaussian;  // kDistributed
  // Most rounds in which a client may take part in the run. All kinds but kCentral.
  std::uint32_t max_participations = 1;
  std::uint32_t min_separation = 0;  // kTree: fewest rounds between two participations
  bool bounds_participation() const { return on() && kind != Kind::kCentral; }
  // True if clients add the noise. The receiver of their updates, masked or not, knows which clients took
  // part. A client's cost is therefore that of its own rounds, however it was drawn.
  bool by_clients() const { return kind == Kind::kDistributed || kind == Kind::kLocal; }

  // Standard deviation over what one client can change, for everything that a round releases together.
  // kLocal: for one update, over twice its norm.
  double noise_multiplier = 0;
  double epsilon = std::numeric_limits<double>::infinity();
  double delta = 1e-5;
  privacy::AccountantKind accountant = privacy::AccountantKind::kPld;

  // Federated statistics: standard deviation of the noise on each count of values, over what one client can
  // change. The other two are set by resolve_differential_privacy().
  double statistics_noise = 0;
  std::int64_t statistics_whole = 0;      // a client's counts are shares of this; 0: the run has none
  std::uint64_t statistics_variance = 0;  // of the noise, in units of shares

  // Set by resolve_differential_privacy().
  double sampling_rate = 1;         // independent probability of each client in a draw; 1: unknown
  double expected_clients = 1;      // in a round; the mean divides by it
  double update_noise = 0;          // the updates' part of noise_multiplier
  std::uint64_t weight = 1;         // of every update in the sums
  std::uint64_t noisy_clients = 1;  // kDistributed: fewest noise contributions in any sum
  std::uint64_t most_releases = 0;  // track phases that the budget allows
  // kTree: the separation used for accounting. Tracks have a tree each, and a client may take part in several
  // in one round. Together they cost at most what one tree of all their phases costs without any separation.
  std::uint32_t accounted_separation = 0;

  // kLocal: the specification sent to clients.
  privacy::LocalPrivacySpec local() const;
  // The privacy release of `count` steps of the statistics.
  privacy::Release statistics_release(std::uint64_t count) const;
  // The privacy release of `count` rounds; `rate` is the probability of each client's draw (kCentral only).
  privacy::Release release(double rate, std::uint64_t count) const;
};

DifferentialPrivacySpec read_differential_privacy(config::Reader& root);
// Derives values from the run's other sections, and sets the fixed point of the run's sums as finely as the
// noise permits. Call it before resolve_secure_aggregation(). Errors, also about parts of the run without a
// known guarantee, stay in `root`.
void resolve_differential_privacy(RunConfig& run, config::Reader& root);

}  // namespace fedge::run
