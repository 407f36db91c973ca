#include "sim/training/update_buffers.h"

#include <algorithm>
#include <utility>

namespace fedge::sim {
namespace {

class BufferedValues final : public aggregation::UpdateValues {
 public:
  BufferedValues(AlignedBuffer<float> buffer, std::shared_ptr<SpareBuffers> spare)
      : buffer_(std::move(buffer)), spare_(std::move(spare)) {}
  ~BufferedValues() override { spare_->give(std::move(buffer_)); }
  BufferedValues(const BufferedValues&) = delete;
  BufferedValues& operator=(const BufferedValues&) = delete;
  std::span<const float> in_memory() const override { return buffer_.span(); }
  Result<void> read(std::size_t first, std::span<float> out) const override {
    return BorrowedValues(buffer_.span()).read(first, out);
  }

 private:
  AlignedBuffer<float> buffer_;
  std::shared_ptr<SpareBuffers> spare_;
};

}  // namespace

AlignedBuffer<float> SpareBuffers::take() {
  const std::lock_guard lock(mutex_);
  if (buffers_.empty()) return {};
  AlignedBuffer<float> buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

void SpareBuffers::give(AlignedBuffer<float> buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.push_back(std::move(buffer));
}

std::shared_ptr<const aggregation::UpdateValues> values_in(AlignedBuffer<float> buffer,
                                                           std::shared_ptr<SpareBuffers> spare) {
  return std::make_shared<BufferedValues>(std::move(buffer), std::move(spare));
}

Result<void> BorrowedValues::read(std::size_t first, std::span<float> out) const {
  std::copy_n(values_.data() + first, out.size(), out.data());
  return {};
}

}  // namespace fedge::sim
