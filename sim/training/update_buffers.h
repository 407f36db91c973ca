// The values of updates in memory, whose buffers are used again.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/aligned_buffer.h"
#include "core/result.h"

namespace fedge::sim {

// Buffers of released updates, for reuse. Any thread.
class SpareBuffers {
 public:
  // Empty if there is none.
  AlignedBuffer<float> take();
  void give(AlignedBuffer<float> buffer);

 private:
  std::mutex mutex_;
  std::vector<AlignedBuffer<float>> buffers_;
};

// Values that return their buffer on destruction.
std::shared_ptr<const aggregation::UpdateValues> values_in(AlignedBuffer<float> buffer,
                                                           std::shared_ptr<SpareBuffers> spare);

// Values that somebody else holds.
class BorrowedValues final : public aggregation::UpdateValues {
 public:
  explicit BorrowedValues(std::span<const float> values) : values_(values) {}
  std::span<const float> in_memory() const override { return values_; }
  Result<void> read(std::size_t first, std::span<float> out) const override;

 private:
  std::span<const float> values_;
};

}  // namespace fedge::sim
