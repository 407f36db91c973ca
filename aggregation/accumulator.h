// Accumulator: the exact weighted mean of updates, computed as a streaming fold. Every contribution round(x *
// weight * 2^fraction_bits) is a 64-bit integer. Integer addition is associative, so the mean is
// bit-identical for any arrival order, number of threads or tree of relays. Each parameter is averaged over
// the updates that cover it; a parameter that no update covers keeps its value. Error of the mean: at most
// half of 2^-fraction_bits over the average weight.
// Memory: 8 bytes a parameter from the first update until clear(), for any number of updates.
// Cost: about 1.7 times a float32 axpy for a single update (64-bit sums, memory-bound); less than one axpy
// each if several are folded together. Externally synchronised.
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

// One client's packed update: values.size() == coverage->count(). Borrowed for the call.
struct UpdateView {
  SampleCount weight;
  const Coverage* coverage = nullptr;
  std::span<const float> values;
  // Multiplies the values, but not the weight in the denominator: positive, at most kMaxFactor. The
  // accumulator rounds weight * factor to 29 significant bits, so that every machine gets the same product.
  double factor = 1.0;
};
inline constexpr double kMaxFactor = 1e6;

// Computes what an update of this weight adds to the sums: out[i] = round(values[i] * weight *
// 2^fraction_bits), for out.size() values. Returns false if a value is not finite or beyond max_abs; `out` is
// then unspecified.
bool contribution(const FixedPoint& format, SampleCount weight, std::span<const float> values,
                  std::span<std::int64_t> out);

// Moves `model` by the mean of this one update, as a coordinator does whose round has no other: in the same
// fixed point, so that the result has the same bits. Nothing moves if the values cannot be summed.
void move_by_one(const FixedPoint& format, SampleCount weight, std::span<const float> values,
                 std::span<float> model);

class Accumulator {
 public:
  // `kernel` is for tests; the default is the fastest kernel of this processor. All kernels give the same
  // bits.
  Accumulator(std::shared_ptr<const ParameterLayout> layout, FixedPoint format,
              const FoldKernel& kernel = fold_kernels().front());

  // Checks that an update of this weight may be folded: weight 1 to kMaxUpdateWeight, and the total (each
  // weight times max(1, factor)) within what the sums can hold.
  Result<void> admit(SampleCount weight, double factor = 1.0) const;

  // Reports the first value that is not finite or beyond max_abs. `first` is the position of values[0] in the
  // packed payload of `coverage`; the error names the parameter and the value.
  Result<void> check(const Coverage& coverage, std::size_t first, std::span<const float> values) const;

  // Folds several waiting updates in one pass over the accumulator. All or nothing: a bad value, found in the
  // same pass, removes the whole call from the sums. The error names the parameter and the update (its
  // position in `updates`, from 1).
  Result<void> fold(std::span<const UpdateView> updates, Parallel& parallel);

  // Fold one update in pieces, for payloads that arrive from a chunk store. open() counts the update's weight
  // over its coverage and ignores its values. Then add() is called exactly once for each piece of the packed
  // payload. Every piece must have passed check(); a piece that has not is an internal error.
  Result<void> open(const UpdateView& update);
  void add(const UpdateView& piece, std::size_t first);

  // Adds sums of the same format that were computed elsewhere. kInvalid if updates of these weights cannot
  // give such a sum.
  Result<void> add(const ExactSum& sum);

  // Writes the mean of parameters first, first + 1, ... in double; 0 where no update contributed. Each mean
  // is multiplied by (weight of the updates that cover the parameter / total_weight())^damping, rounded to
  // single precision so that the last bits of a math library's pow() do not matter.
  void mean(std::size_t first, std::span<double> out, double damping = 0) const;
  // Divides the sums by this weight instead of the weight of the contributing updates.
  void mean_over(double weight, std::size_t first, std::span<double> out) const;
  // The integer sums, one a parameter, so that noise can be added.
  std::span<std::int64_t> sums() {
    require_sums();
    return sums_.span();
  }

  std::size_t updates() const { return updates_; }
  // Weight of all updates. An added sum counts with its heaviest cell: that is the weight of its updates if
  // they all cover some parameter, and less otherwise.
  SampleCount total_weight() const { return total_weight_; }
  // The parameters that at least one update covered; weights() has the weight of each.
  Coverage covered() const { return weights_.covered(); }
  const WeightMap& weights() const { return weights_; }

  // Forgets every update and returns the sums' memory.
  void clear();

 private:
  // Checks that this weight fits on top of the weight that the sums hold already.
  Result<void> admit(SampleCount weight, double factor, std::uint64_t held) const;
  // Checks that this update fits the layout and, on top of `held`, the sums.
  Result<void> admit(const UpdateView& update, std::uint64_t held) const;
  void count(const UpdateView& update);
  void require_sums();

  std::shared_ptr<const ParameterLayout> layout_;
  FixedPoint format_;
  FoldKernel kernel_;
  std::int32_t limit_;  // limit_bits(format_.max_abs)
  // Empty until the first update.
  AlignedBuffer<std::int64_t> sums_;
  WeightMap weights_;
  std::size_t updates_ = 0;
  SampleCount total_weight_;
  std::uint64_t held_ = 0;  // of max_total_weight(): each weight times max(1, factor), rounded up
};

}  // namespace fedge::aggregation
