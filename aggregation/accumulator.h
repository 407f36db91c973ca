// Accumulator: the exact weighted mean of updates as a streaming fold. Every contribution
// round(x * weight * 2^fraction_bits) is a 64-bit integer, and integer addition is associative, so
// the mean is bit-identical whatever the arrival order, the threads, or the tree of relays.
// Coverage-weighted: each parameter is averaged over the updates that cover it; one that nobody
// covered keeps its value. Error of the mean: at most half of 2^-fraction_bits over the average weight.
// Memory: 8 bytes a parameter between the first update and clear(), whatever the number of updates.
// Cost: about 1.7 times that of a float32 axpy for a lone update (twice as wide sums, bound by
// memory), less than one axpy each when several are folded together. Externally synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "aggregation/exact_sum.h"
#include "aggregation/fixed_point.h"
#include "aggregation/kernels/fold.h"
#include "aggregation/value_check.h"
#include "aggregation/weight_map.h"
#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/ids.h"
#include "core/parallel.h"
#include "core/parameters.h"
#include "core/result.h"

namespace fedge::aggregation {

// One client's update, packed: values.size() == coverage->count(). Borrowed for the call.
struct UpdateView {
  SampleCount weight;
  const Coverage* coverage = nullptr;
  std::span<const float> values;
  // The values count this many times, the weight but once: positive, at most kMaxFactor. Rounded to what
  // keeps weight * factor within 29 significant bits, so that every machine gets the same product.
  double factor = 1.0;
};
inline constexpr double kMaxFactor = 1e6;

// What an update of this weight adds to the sums: out[i] = round(values[i] * weight * 2^fraction_bits), of as
// many values as `out` holds. False if one is not finite or beyond max_abs; `out` is of no use then.
bool contribution(const FixedPoint& format, SampleCount weight, std::span<const float> values,
                  std::span<std::int64_t> out);

class Accumulator {
 public:
  // `kernel` is for tests; by default the fastest this processor can run. All give the same bits.
  Accumulator(std::shared_ptr<const ParameterLayout> layout, FixedPoint format,
              const FoldKernel& kernel = fold_kernels().front());

  // Whether an update of this weight may still be folded: 1 to kMaxUpdateWeight, and the total (each
  // weight times its factor, if that is above 1) within what the sums can hold.
  Result<void> admit(SampleCount weight, double factor = 1.0) const;

  // Finds the first value that is not finite or beyond max_abs. `first` is the position of
  // values[0] in the packed payload of `coverage`; the error names the parameter and the value.
  Result<void> check(const Coverage& coverage, std::size_t first, std::span<const float> values) const;

  // Folds several waiting updates in one pass over the accumulator. All or nothing: if any holds a
  // bad value (found on the way, no extra pass) nothing of that call stays in the sums.
  // The error names the update by its place in `updates`, counted from 1, and the parameter.
  Result<void> fold(std::span<const UpdateView> updates, Parallel& parallel);

  // The same in two parts, for payloads that arrive from a chunk store: open() counts the update's
  // weight over its coverage, then add() is called for each piece of its packed payload exactly
  // once. Every piece must have passed check(); one that has not is an internal error.
  // Of `update`, open() looks at no values; add() is given a piece of them.
  Result<void> open(const UpdateView& update);
  void add(const UpdateView& piece, std::size_t first);

  // Adds what others have summed, in the same format. kInvalid if updates of such weights cannot come to it.
  Result<void> add(const ExactSum& sum);

  // The mean of parameters first, first + 1, ... in double; 0 where nobody contributed.
  void mean(std::size_t first, std::span<double> out) const;
  // The sums over this weight, whoever contributed.
  void mean_over(double weight, std::size_t first, std::span<double> out) const;
  // The sums themselves, one a parameter, for noise to be added.
  std::span<std::int64_t> sums() {
    require_sums();
    return sums_.span();
  }

  std::size_t updates() const { return updates_; }
  SampleCount total_weight() const { return total_weight_; }
  // Parameters that at least one update covered, and by how much.
  Coverage covered() const { return weights_.covered(); }
  const WeightMap& weights() const { return weights_; }

  // Forgets every update and returns the sums' memory.
  void clear();

 private:
  // Whether this weight fits on top of what the sums hold already.
  Result<void> admit(SampleCount weight, double factor, std::uint64_t held) const;
  // Whether this update fits the layout and, on top of that, the sums.
  Result<void> admit(const UpdateView& update, std::uint64_t held) const;
  void count(const UpdateView& update);
  void require_sums();

  std::shared_ptr<const ParameterLayout> layout_;
  FixedPoint format_;
  FoldKernel kernel_;
  std::int32_t limit_;  // limit_bits(format_.max_abs)
  // Empty until there is something to add up.
  AlignedBuffer<std::int64_t> sums_;
  WeightMap weights_;
  std::size_t updates_ = 0;
  SampleCount total_weight_;
  std::uint64_t held_ = 0;  // of max_total_weight(): each weight times max(1, factor), rounded up
};

}  // namespace fedge::aggregation
