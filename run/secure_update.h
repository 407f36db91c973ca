// Masked updates: converts a client's values to masked integers, and the sum of those to the exact sum that
// an aggregator accepts. The daemons and the simulator use the same code. A masked update has words, packed
// over the parameters that it masks, and scalars. The scalars are its weight in each cell of the session (0
// where it trains nothing), then loss * samples in units of 2^-16, then its samples, then the sums of an
// evaluation (learn::EvaluationSums). Scalars are modulo 2^64, words modulo 2^32 or 2^64. A parameter that
// too few clients train is in no cell, and no client sends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "aggregation/accumulator.h"
#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/parallel.h"
#include "core/result.h"
#include "core/rng.h"
#include "privacy/secure_aggregation/client.h"
#include "privacy/secure_aggregation/masking_spec.h"
#include "privacy/secure_aggregation/recovery.h"
#include "run/privacy/private_sum.h"

namespace fedge::run {

// Scalars besides the weights of the cells and the sums of an evaluation.
inline constexpr std::size_t kSecureFigures = 2;

// A client's trained update before masking.
struct PlainUpdate {
  const Coverage* coverage = nullptr;
  std::span<const float> values;  // packed over the coverage
  SampleCount samples;            // 0: training failed, and the update counts for nothing
  double loss = 0;                // mean training loss
  Rng rounding{0};                // the client's own stream; used by 32-bit words
  // Source of the client's noise; required if the run's clients add noise.
  std::optional<PrivateSum::Noise> noise = {};
  std::span<const std::int64_t> task_sums = {};  // of an evaluation or of statistics
};
struct MaskedUpdate {
  Coverage coverage;
  std::vector<std::byte> words;
  std::vector<std::uint64_t> scalars;
  std::optional<std::uint64_t> release = {};  // release id of its noise (privacy::release_id), if any
  std::optional<Error> fault = {};            // why its values are zeros; stays with the client
};
// Masks an update. With differential privacy it is clipped, and loss and samples are not reported. A refusal
// would reveal something about the values, so every update is masked: a value beyond the run's max_abs is
// clamped, and an update that is not finite is masked as zeros of weight 0. If a clipping norm gives all
// updates the same weight, such zeros have this weight and the usual noise. kUnsupported if the sampler
// cannot generate this much noise.
Result<MaskedUpdate> mask_update(const PlainUpdate& update, const privacy::MaskingSpec& spec,
                                 const privacy::Masking& masking, Parallel& parallel);

// Checks the total weight of this number of updates in each cell. Single weights are hidden, so one update
// may use what the others leave. kInvalid if a total is too large.
Result<void> check_weights(const privacy::MaskingSpec& spec, std::span<const std::uint64_t> weights,
                           std::size_t updates);

// The running sum of a session's masked updates. Memory: a word for each summed parameter, for any number of
// updates; with 32-bit words three times as much after unmasking. Externally synchronised.
class SecureSum {
 public:
  SecureSum(const privacy::MaskingSpec& spec, std::vector<Range> cells, std::size_t task_sums = 0);

  // Reads bytes of a masked update's words, from `first` on.
  using Read = std::function<Result<void>(std::uint64_t first, std::span<std::byte> out)>;
  struct Masked {
    const Coverage* coverage = nullptr;  // a union of cells
    Read read;
    std::span<const std::uint64_t> scalars;  // as many as scalars()
  };
  std::size_t scalars() const { return scalars_.size(); }
  // Errors are those of `read`; after an error the sum must not be used.
  Result<void> add(const Masked& update);
  std::size_t updates() const { return updates_; }

  // The sum without the masks.
  struct Plain {
    std::vector<Range> cells;
    std::vector<std::uint64_t> weights;
    AlignedBuffer<std::int64_t> sums;
    std::size_t updates = 0;
    double loss = 0;  // mean, by samples
    std::uint64_t samples = 0;
    std::vector<std::int64_t> task_sums = {};

    aggregation::ExactSum view() const { return {cells, weights, sums.span(), updates}; }
  };
  // Consumes the sum. kUnavailable if all updates have weight 0. kInvalid if the result is no sum of updates
  // under these rules: a client has sent a wrong update or used wrong masks.
  Result<Plain> unmask(const privacy::SumMasks& masks, Parallel& parallel) &&;

 private:
  template <class Word>
  Result<void> add_words(Word* sums, const Masked& update);
  // The 64-bit sums as unsigned integers, which wrap.
  std::span<std::uint64_t> wide_words() {
    return {reinterpret_cast<std::uint64_t*>(wide_.data()), wide_.size()};
  }
  // Position of a parameter in the packed sums.
  std::size_t position_of(std::size_t parameter) const;

  privacy::MaskingSpec spec_;
  std::vector<Range> cells_;
  std::vector<std::size_t> positions_;  // first position of each cell
  AlignedBuffer<std::int64_t> wide_;    // either wide_ or narrow_ is used
  AlignedBuffer<std::uint32_t> narrow_;
  std::vector<std::uint64_t> scalars_;
  std::size_t task_sums_;  // the last scalars
  std::size_t updates_ = 0;
};

}  // namespace fedge::run
