#include "client/trainers/trainer_update.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/safetensors.h"

namespace fedge::client {
namespace {

// Packs the covered parts of the tensors one after the other; tensors and coverage are in the model's
// order.
class Packer {
 public:
  Packer(const TrainedFrom& from, std::span<float> update) : from_(from), update_(update) {}

  void pack(const TensorInfo& tensor, std::span<const float> trained) {
    const auto& ranges = from_.coverage.ranges();
    const std::size_t end = tensor.offset + tensor.size;
    for (; range_ < ranges.size() && ranges[range_].begin < end; ++range_) {
      const std::size_t first = std::max(ranges[range_].begin, tensor.offset);
      const std::size_t last = std::min(ranges[range_].end, end);
      for (std::size_t i = first; i < last; ++i)
        update_[position_++] = trained[i - tensor.offset] - from_.model[i];
      if (ranges[range_].end > end) return;  // continues in the next tensor
    }
  }

 private:
  const TrainedFrom& from_;
  std::span<float> update_;
  std::size_t range_ = 0;
  std::size_t position_ = 0;
};

}  // namespace

Result<void> trained_difference(std::span<const std::byte> payload, const TrainedFrom& from,
                                std::span<float> update) {
  FEDGE_CHECK(from.coverage.count() == update.size() && from.coverage.end() <= from.layout.size(),
              "the update's size");
  FEDGE_TRY(header, parse_safetensors_header(payload, "the trained model"));
  FEDGE_TRY_VOID(check_same_tensors(header.layout, from.layout));
  Packer packer(from, update);
  std::vector<float> values;
  for (const TensorInfo& tensor : from.layout.tensors()) {
    const TensorInfo& sent = *header.layout.find(tensor.name);
    values.resize(tensor.size);  // the bytes need not be aligned
    std::memcpy(values.data(), payload.data() + header.data_offset + sent.offset * sizeof(float),
                tensor.size * sizeof(float));
    const auto bad =
        std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    if (bad != values.end())
      return invalid("the trained model's " +
                     from.layout.describe(tensor.offset + static_cast<std::size_t>(bad - values.begin())) +
                     " is not a finite number; check whether the training diverged");
    packer.pack(tensor, values);
  }
  return {};
}

}  // namespace fedge::client
