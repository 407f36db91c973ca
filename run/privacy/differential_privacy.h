// DifferentialPrivacySpec: section [differential_privacy] of a run file: how little a run's models may tell
// of any one client, and what they are noised with. Values; any thread.
#pragma once

#include <cstdint>
#include <limits>

#include "core/config/reader.h"
#include "privacy/differential/accounting/accountant.h"
#include "privacy/differential/local_privacy.h"
#include "privacy/differential/noise.h"

namespace fedge::run {

struct RunConfig;

// How an update is cut down to what one client may change.
enum class Clipping {
  kFlat,      // its Euclidean norm, to clipping_norm
  kPerLayer,  // that of each of its L layers, to clipping_norm / sqrt(L)
  kAdaptive,  // as kFlat, with a norm that follows a quantile of the clients' (Andrew et al., NeurIPS 2021)
};

struct DifferentialPrivacySpec {
  enum class Kind { kNone, kCentral, kDistributed, kTree, kLocal };
  Kind kind = Kind::kNone;
  bool on() const { return kind != Kind::kNone; }
  // Whether what is protected are the sums, by whom they are made; otherwise it is every single update.
  bool of_sums() const { return on() && kind != Kind::kLocal; }

  Clipping clipping = Clipping::kFlat;
  double clipping_norm = 1;  // kAdaptive: of the first round
  // Of kAdaptive: the share of updates that are not to be clipped, how fast the norm goes there, and the
  // standard deviation of the noise on how many are not (sigma_b of the paper).
  double target_quantile = 0.5;
  double clipping_rate = 0.2;
  double count_noise = 1;

  privacy::NoiseKind noise = privacy::NoiseKind::kGaussian;  // kDistributed
  // All but kCentral: how often a client may take part in the run.
  std::uint32_t max_participations = 1;
  std::uint32_t min_separation = 0;  // kTree: rounds between two such, at least
  bool bounds_participation() const { return on() && kind != Kind::kCentral; }
  // Whether it is the clients who make noise. Who gets their updates, masked or not, knows who has taken
  // part, so that a client's cost is that of the rounds in which it did, however it was drawn.
  bool by_clients() const { return kind == Kind::kDistributed || kind == Kind::kLocal; }

  // Of all that a round releases together: standard deviation over what one client can change. kLocal: of an
  // update, over twice its norm.
  double noise_multiplier = 0;
  double epsilon = std::numeric_limits<double>::infinity();
  double delta = 1e-5;
  privacy::AccountantKind accountant = privacy::AccountantKind::kPld;

  // Once resolve_differential_privacy() has been called.
  double sampling_rate = 1;     // with which each client is drawn, whoever the others are; 1: it is not known
  double expected_clients = 1;  // in a round; the mean divides by it
  double update_noise = 0;      // the part of noise_multiplier that is the updates'
  std::uint64_t weight = 1;     // of every update in the sums
  std::uint64_t noisy_clients = 1;  // kDistributed: in any sum there is the noise of so many
  std::uint64_t most_releases = 0;  // that the budget allows: turns of a track
  // kTree: what is accounted for. Tracks have a tree each, and a client may take part in several in one
  // round: all together cost at most what one tree of all their turns does without any separation.
  std::uint32_t accounted_separation = 0;

  // kLocal: what clients are told.
  privacy::LocalPrivacySpec local() const;
  // What so many releases are where clients were drawn with this chance (kCentral).
  privacy::Release release(double rate, std::uint64_t count) const;
};

DifferentialPrivacySpec read_differential_privacy(config::Reader& root);
// Fills in what follows from the run's other sections, and sets the fixed point of its sums: as fine as the
// noise. Before resolve_secure_aggregation(). Errors, also about parts of the run that no guarantee is known
// for, are left in `root`.
void resolve_differential_privacy(RunConfig& run, config::Reader& root);

}  // namespace fedge::run
