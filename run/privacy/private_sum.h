// PrivateSum: applies differential privacy to one model's rounds when the coordinator sums the updates. Each
// update is clipped to bound what one client may change, and noise is added to the sum. Everything derived
// from the sum may then be published (McMahan et al., "Learning Differentially Private Recurrent Language
// Models", ICLR 2018; the mean divides by the expected number of clients, not by the actual one).
// Memory: constant, plus the pieces of one update. Externally synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/coverage.h"
#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/parallel.h"
#include "core/parameters.h"
#include "core/result.h"
#include "run/privacy/differential_privacy.h"

namespace fedge::run {

// The factor for an update of this norm: the product's norm is at most `largest`, including rounding.
double clip_factor(double norm, double largest);
// Scales the values by clip_factor(). Returns false if one is not finite.
bool clip_values(double largest, std::span<float> values);

// Standard deviation of the noise, in units of the sum. One client's part has at most this norm before each
// of its `numbers` is rounded to whole units (by at most half a unit).
double noise_deviation(double multiplier, double norm_units, std::size_t numbers);

class PrivateSum {
 public:
  // For a run with differential privacy, summed in these units.
  PrivateSum(const DifferentialPrivacySpec& spec, const aggregation::FixedPoint& format,
             std::shared_ptr<const ParameterLayout> layout);

  // The update to fold: clipped, and with the common weight. Its values must have been checked, and its norm
  // computed from them. Errors are those of reading the values.
  Result<aggregation::Update> clip(aggregation::Update update);

  // The source of noise: this machine's noise key and the task that the noise is for.
  struct Noise {
    const Secret* root = nullptr;
    TaskId task;
  };
  // Ends a round after its last update: adds noise to the rule's sums and sets the rule's divisor.
  // kUnsupported if the sampler cannot generate this much noise.
  Result<void> release(aggregation::Aggregator& rule, const Noise& noise, Parallel& parallel);
  // Ends the round; an adaptive norm changes here.
  void close();

  double clipping_norm() const { return norm_; }
  // State across rounds, as Aggregator::memory().
  std::span<std::byte> memory() {
    return std::as_writable_bytes(std::span(&norm_, spec_.clipping == Clipping::kAdaptive ? 1 : 0));
  }

 private:
  Result<aggregation::Update> clip_layers(aggregation::Update update) const;
  void adapt(const Secret& key);

  DifferentialPrivacySpec spec_;
  std::shared_ptr<const ParameterLayout> layout_;
  Coverage trainable_;
  std::size_t layers_;  // layers with trainable parameters
  double unit_;         // units of the sums for an update's value of 1
  double norm_;
  std::int64_t count_ = 0;      // of this round: unclipped minus clipped updates
  std::optional<double> next_;  // norm of the next round
};

}  // namespace fedge::run
