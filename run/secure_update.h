// Updates that are summed in secret: how a client's values become masked integers, and how those become the
// exact sum that an aggregator takes. The same in the daemons and in the simulator. A masked update has its
// words, packed over what it masks, and scalars: its weight in each cell of the session (0 where it trains
// nothing), then loss * samples in units of 2^-16, then its samples; all modulo 2^64, words modulo 2^32 or
// 2^64. Where too few train a parameter it is in no cell, and nobody sends it.
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

// Beyond the weights of its cells.
inline constexpr std::size_t kSecureFigures = 2;

// What a client has trained.
struct PlainUpdate {
  const Coverage* coverage = nullptr;
  std::span<const float> values;  // packed over it
  SampleCount samples;            // 0: nothing came of it, and it counts for nothing
  double loss = 0;                // mean of its training
  Rng rounding{0};                // its own; used by words of 32 bits
  // Where the client's noise comes from; needed if the run's clients add some.
  std::optional<PrivateSum::Noise> noise = {};
};
struct MaskedUpdate {
  Coverage coverage;
  std::vector<std::byte> words;
  std::vector<std::uint64_t> scalars;
  std::optional<std::uint64_t> release =
      {};                           // what its noise is known by (privacy::release_id), if it has some
  std::optional<Error> fault = {};  // why it is of zeros; for the client alone
};
// With differential privacy the update is clipped, and of loss and samples nothing is told. Whether an update
// can be summed tells of its values, so it always is: a value beyond the run's max_abs counts as that, and an
// update that is not finite is masked as zeros of weight 0. Where a norm makes all weigh the same, zeros have
// that weight and the client's usual noise.
// kUnsupported if the noise is more than the sampler makes.
Result<MaskedUpdate> mask_update(const PlainUpdate& update, const privacy::MaskingSpec& spec,
                                 const privacy::Masking& masking, Parallel& parallel);

// That so many updates may weigh this together, in each cell: nobody sees what each of them weighs, so that
// one may have what the others leave. kInvalid if they may not.
Result<void> check_weights(const privacy::MaskingSpec& spec, std::span<const std::uint64_t> weights,
                           std::size_t updates);

// The running sum of a session's masked updates. Memory: a word for each parameter that is summed, whatever
// the number of updates; where its words have 32 bits three times as much once they are unmasked. Externally
// synchronised.
class SecureSum {
 public:
  SecureSum(const privacy::MaskingSpec& spec, std::vector<Range> cells);

  // Reads bytes of a masked update's words, from `first` on.
  using Read = std::function<Result<void>(std::uint64_t first, std::span<std::byte> out)>;
  struct Masked {
    const Coverage* coverage = nullptr;  // a union of cells
    Read read;
    std::span<const std::uint64_t> scalars;  // as many as scalars()
  };
  std::size_t scalars() const { return scalars_.size(); }
  // An error is that of `read`: the sum is of no use then.
  Result<void> add(const Masked& update);
  std::size_t updates() const { return updates_; }

  // What is left without the masks.
  struct Plain {
    std::vector<Range> cells;
    std::vector<std::uint64_t> weights;
    AlignedBuffer<std::int64_t> sums;
    std::size_t updates = 0;
    double loss = 0;  // mean, by samples
    std::uint64_t samples = 0;

    aggregation::ExactSum view() const { return {cells, weights, sums.span(), updates}; }
  };
  // Ends the sum's use. kUnavailable if none of the updates has a weight; kInvalid if what comes out is no
  // sum of updates of these rules: somebody has sent another update than it should, or its masks were others.
  Result<Plain> unmask(const privacy::SumMasks& masks, Parallel& parallel) &&;

 private:
  template <class Word>
  Result<void> add_words(Word* sums, const Masked& update);
  // Their bits as unsigned integers, which wrap.
  std::span<std::uint64_t> wide_words() {
    return {reinterpret_cast<std::uint64_t*>(wide_.data()), wide_.size()};
  }
  // Where a parameter is in the packed sums.
  std::size_t position_of(std::size_t parameter) const;

  privacy::MaskingSpec spec_;
  std::vector<Range> cells_;
  std::vector<std::size_t> positions_;  // of the cells
  AlignedBuffer<std::int64_t> wide_;    // one of these
  AlignedBuffer<std::uint32_t> narrow_;
  std::vector<std::uint64_t> scalars_;
  std::size_t updates_ = 0;
};

}  // namespace fedge::run
