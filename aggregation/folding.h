// Folding: one call's walk over the accumulator's sums. It splits the parameters into blocks that stay in the
// cache while every waiting update is added, and distributes the blocks to threads. It chooses the kernel's
// fast or wide conversion by the values; the result does not depend on any of this. Used only by
// accumulator.cc; borrows everything for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregation/accumulator.h"

namespace fedge::aggregation {

class Folding {
 public:
  Folding(const FoldKernel& kernel, const FixedPoint& format, std::span<std::int64_t> sums)
      : kernel_(kernel), limit_(limit_bits(format.max_abs)), unit_(format.unit()), sums_(sums) {}

  enum class Sign { kAdd, kTakeOut };

  // Adds whole updates. Returns false if a value is not finite or beyond the format's limit; the sums are
  // then invalid until the same call with kTakeOut restores them.
  bool run(std::span<const UpdateView> updates, Sign sign, Parallel& parallel) const;

  // Adds values[0..] of one update, packed over its coverage from position `first` on. Returns as run().
  bool run_part(const UpdateView& update, std::size_t first) const;

 private:
  // An update and the payload position of each of its ranges, for lookups in O(log ranges).
  struct Packed {
    explicit Packed(const UpdateView& update);
    const UpdateView* update;
    std::vector<std::size_t> positions;
  };

  FoldInput input(const float* values, const UpdateView& update, Sign sign) const;
  bool fold_block(const std::vector<Packed>& packed, Range block, Sign sign,
                  std::vector<FoldInput>& whole) const;
  bool add(std::size_t begin, std::span<const FoldInput> inputs, std::size_t count) const;

  FoldKernel kernel_;
  std::int32_t limit_;
  double unit_;
  std::span<std::int64_t> sums_;
};

}  // namespace fedge::aggregation
