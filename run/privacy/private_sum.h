// PrivateSum: what differential privacy does to one model's rounds, wherever the updates are summed by the
// coordinator: each is cut down to what one client may change, and noise is added to the sum. After that
// nothing that is made of the sum needs to be kept from anybody (McMahan et al., "Learning Differentially
// Private Recurrent Language Models", ICLR 2018; the mean is over the clients that a round expects, whoever
// comes). Externally synchronised. Memory: that of a few numbers; besides, of one update's pieces.
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

// What an update of this norm is multiplied by, so that its norm is at most `largest` however the product is
// rounded.
double clip_factor(double norm, double largest);
// Multiplies them by that. False if one is not finite.
bool clip_values(double largest, std::span<float> values);

// Standard deviation of noise, in units of a sum in which one client's part has at most this norm before each
// of its `numbers` is rounded to whole units (by at most half of one).
double noise_deviation(double multiplier, double norm_units, std::size_t numbers);

class PrivateSum {
 public:
  // Of a run with differential privacy, summed in these units.
  PrivateSum(const DifferentialPrivacySpec& spec, const aggregation::FixedPoint& format,
             std::shared_ptr<const ParameterLayout> layout);

  // The update as it is to be folded: clipped, and with the weight of all. Its values have been inspected,
  // its norm is theirs. Errors are those of reading them.
  Result<aggregation::Update> clip(aggregation::Update update);

  // Where noise comes from: the key that this machine keeps for it, and what it is for.
  struct Noise {
    const Secret* root = nullptr;
    TaskId task;
  };
  // Of the round's last update: noise goes into the rule's sums, and the rule divides as privacy demands.
  // kUnsupported if the noise is more than the sampler makes.
  Result<void> release(aggregation::Aggregator& rule, const Noise& noise, Parallel& parallel);
  // The round is over; a norm that adapts does.
  void close();

  double clipping_norm() const { return norm_; }
  // What goes on from one round to the next; see Aggregator::memory().
  std::span<std::byte> memory() {
    return std::as_writable_bytes(std::span(&norm_, spec_.clipping == Clipping::kAdaptive ? 1 : 0));
  }

 private:
  Result<aggregation::Update> clip_layers(aggregation::Update update) const;
  void adapt(const Secret& key);

  DifferentialPrivacySpec spec_;
  std::shared_ptr<const ParameterLayout> layout_;
  Coverage trainable_;
  std::size_t layers_;  // that have some
  double unit_;         // of the sums, for an update's value of 1
  double norm_;
  std::int64_t count_ = 0;      // of the round: updates that were not clipped less those that were
  std::optional<double> next_;  // norm of the next round
};

}  // namespace fedge::run
