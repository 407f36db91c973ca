#include "aggregation/folding.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

namespace fedge::aggregation {
namespace {

// Parameters in one pass over several updates: 32 KiB of sums, still in the first- or second-level cache when
// the next group of updates is added.
constexpr std::size_t kBlock = 4096;
// Parameters in one thread's task: large compared with the cost of scheduling it, small enough that a
// half-megabyte model still uses two threads.
constexpr std::size_t kFoldTask = 16 * kBlock;

// Rounds weight * factor to 29 significant bits. Its product with a float32 is then exact in a double, so
// kernels with and without fused multiply-add give the same bits.
double scale_of(SampleCount weight, double factor) {
  const double product = static_cast<double>(weight.value()) * factor;
  int exponent = 0;
  const double mantissa = std::frexp(product, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 29)), exponent - 29);
}

}  // namespace

Folding::Packed::Packed(const UpdateView& view) : update(&view) {
  positions.reserve(view.coverage->ranges().size());
  std::size_t position = 0;
  for (const Range& range : view.coverage->ranges()) {
    positions.push_back(position);
    position += range.size();
  }
}

bool Folding::run(std::span<const UpdateView> updates, Sign sign, Parallel& parallel) const {
  const std::vector<Packed> packed(updates.begin(), updates.end());
  std::atomic<bool> good = true;
  parallel.for_each((sums_.size() + kFoldTask - 1) / kFoldTask, [&](std::size_t task) {
    std::vector<FoldInput> whole;
    whole.reserve(packed.size());
    const std::size_t last = std::min(sums_.size(), (task + 1) * kFoldTask);
    for (std::size_t begin = task * kFoldTask; begin < last; begin += kBlock)
      if (!fold_block(packed, {begin, std::min(last, begin + kBlock)}, sign, whole)) good = false;
  });
  return good;
}

bool Folding::fold_block(const std::vector<Packed>& packed, Range block, Sign sign,
                         std::vector<FoldInput>& whole) const {
  bool good = true;
  whole.clear();
  for (const Packed& one : packed) {
    const std::vector<Range>& ranges = one.update->coverage->ranges();
    auto range = std::upper_bound(ranges.begin(), ranges.end(), block.begin,
                                  [](std::size_t parameter, const Range& r) { return parameter < r.end; });
    for (; range != ranges.end() && range->begin < block.end; ++range) {
      const Range common{std::max(block.begin, range->begin), std::min(block.end, range->end)};
      const std::size_t position =
          one.positions[static_cast<std::size_t>(range - ranges.begin())] + common.begin - range->begin;
      const FoldInput part = input(one.update->values.data() + position, *one.update, sign);
      if (common == block)
        whole.push_back(part);
      else
        good &= add(common.begin, {&part, 1}, common.size());
    }
  }
  return add(block.begin, whole, block.size()) && good;
}

bool Folding::run_part(const UpdateView& update, std::size_t first) const {
  bool good = true;
  std::size_t skipped = 0;  // positions of the payload before the current range
  std::size_t done = 0;     // of update.values
  for (const Range& range : update.coverage->ranges()) {
    if (done == update.values.size()) break;
    if (first + done >= skipped + range.size()) {
      skipped += range.size();
      continue;
    }
    std::size_t parameter = range.begin + (first + done - skipped);
    while (parameter < range.end && done < update.values.size()) {
      const std::size_t count = std::min({kBlock, range.end - parameter, update.values.size() - done});
      const FoldInput part = input(update.values.data() + done, update, Sign::kAdd);
      good &= add(parameter, {&part, 1}, count);
      parameter += count;
      done += count;
    }
    skipped += range.size();
  }
  return good;
}

FoldInput Folding::input(const float* values, const UpdateView& update, Sign sign) const {
  const double scale = scale_of(update.weight, update.factor) * unit_;
  const auto largest = static_cast<double>(std::bit_cast<float>(limit_));
  return {.values = values,
          .scale = sign == Sign::kAdd ? scale : -scale,
          .limit = largest * scale > kFastLimit ? limit_bits(kFastLimit / scale) : limit_};
}

// Adds `inputs`, all for the parameters from `begin` on. Rounding to even is symmetric around 0, so a
// negative scale removes exactly what a positive one added.
bool Folding::add(std::size_t begin, std::span<const FoldInput> inputs, std::size_t count) const {
  std::int64_t* sums = sums_.data() + begin;
  if (!kernel_.fold(sums, inputs.data(), inputs.size(), count)) return true;
  bool good = true;
  for (FoldInput input : inputs) {
    const std::int32_t largest = kernel_.max_magnitude(input.values, count);
    if (largest <= input.limit) continue;
    // Remove what the fast conversion added for this stretch; the wide conversion then adds all of it.
    FoldInput inverse = input;
    inverse.scale = -input.scale;
    kernel_.fold(sums, &inverse, 1, count);
    if (largest <= limit_)
      kernel_.fold_wide(sums, input, count);
    else
      good = false;
  }
  return good;
}

}  // namespace fedge::aggregation
