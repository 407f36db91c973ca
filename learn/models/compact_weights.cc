#include "learn/models/compact_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/text.h"
#include "learn/weights/half.h"

namespace fedge::learn {
namespace {

constexpr float kMostLevel = 127;

// Rounds to the nearest, ties to even; towards zero where that would be infinite.
std::uint16_t bfloat16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U;
  return static_cast<std::uint16_t>((rounded & 0x7f80U) == 0x7f80U ? bits >> 16U : rounded);
}

// The distance of the levels of a group. Cut to 16 significant bits, so that its products with levels are
// exact, and the distance is the largest product divided by 127.
float scale_of(std::span<const float> group) {
  float most = 0;
  for (const float value : group) most = std::max(most, std::abs(value));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(most / kMostLevel) & 0xffffff00U);
}

// The nearest level; 0 of values that are not finite.
std::int8_t level_of(float value, float scale) {
  const float quotient = value / scale;
  if (!(scale > 0) || !std::isfinite(quotient)) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(quotient), -kMostLevel, kMostLevel));
}

// The first group of each tensor; at the end, the number of groups.
std::vector<std::size_t> first_groups(const ParameterLayout& layout) {
  std::vector<std::size_t> first = {0};
  for (const TensorInfo& tensor : layout.tensors())
    first.push_back(first.back() +
                    (CompactWeights::holds(tensor) ? (tensor.size + kInt8Group - 1) / kInt8Group : 0));
  return first;
}

// A multiple of a cache line, as the levels follow.
std::size_t scale_bytes(const ParameterLayout& layout) {
  const std::size_t bytes = first_groups(layout).back() * sizeof(float);
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

void round_group(std::span<float> group) {
  const float scale = scale_of(group);
  for (float& value : group) value = static_cast<float>(level_of(value, scale)) * scale;
}

}  // namespace

const std::vector<std::string>& base_dtype_names() {
  static const std::vector<std::string> kNames = {"float32", "bfloat16", "int8"};
  return kNames;
}

void round_base(const ParameterLayout& layout, BaseDtype dtype, std::span<float> values) {
  FEDGE_CHECK(values.size() == layout.size(), "the values of the layout");
  if (dtype == BaseDtype::kFloat32) return;
  for (const TensorInfo& tensor : layout.tensors()) {
    if (!CompactWeights::holds(tensor)) continue;
    const auto matrix = values.subspan(tensor.offset, tensor.size);
    if (dtype == BaseDtype::kBfloat16) {
      for (float& value : matrix) value = float_of_bfloat16(bfloat16_of(value));
      continue;
    }
    for (std::size_t i = 0; i < matrix.size(); i += kInt8Group)
      round_group(matrix.subspan(i, std::min(kInt8Group, matrix.size() - i)));
  }
}

CompactWeights::CompactWeights(std::shared_ptr<const ParameterLayout> layout, BaseDtype dtype)
    : CompactWeights(layout, dtype, AlignedBuffer<std::byte>(bytes_of(*layout, dtype)), std::nullopt) {}

CompactWeights::CompactWeights(std::shared_ptr<const ParameterLayout> layout, BaseDtype dtype,
                               SharedFile file)
    : CompactWeights(std::move(layout), dtype, {}, std::move(file)) {}

CompactWeights::CompactWeights(std::shared_ptr<const ParameterLayout> layout, BaseDtype dtype,
                               AlignedBuffer<std::byte> memory, std::optional<SharedFile> file)
    : layout_(std::move(layout)),
      dtype_(dtype),
      first_groups_(first_groups(*layout_)),
      memory_(std::move(memory)),
      file_(std::move(file)) {
  FEDGE_CHECK((file_ ? file_->size() : memory_.size()) == bytes_of(*layout_, dtype_),
              "memory for the weights");
  std::byte* const begin = file_ ? file_->data() : memory_.data();
  switch (dtype_) {
    case BaseDtype::kFloat32:
      floats_ = reinterpret_cast<float*>(begin);
      break;
    case BaseDtype::kBfloat16:
      halves_ = reinterpret_cast<std::uint16_t*>(begin);
      break;
    case BaseDtype::kInt8:
      scales_ = reinterpret_cast<float*>(begin);
      levels_ = reinterpret_cast<std::int8_t*>(begin + scale_bytes(*layout_));
      break;
  }
}

std::size_t CompactWeights::bytes_of(const ParameterLayout& layout, BaseDtype dtype) {
  switch (dtype) {
    case BaseDtype::kFloat32:
      return layout.size() * sizeof(float);
    case BaseDtype::kBfloat16:
      return layout.size() * sizeof(std::uint16_t);
    case BaseDtype::kInt8:
      return scale_bytes(layout) + layout.size();
  }
  return 0;
}

Result<void> CompactWeights::publish(const std::filesystem::path& path) {
  FEDGE_CHECK(file_ && file_->writable(), "weights in a new file");
  return file_->publish(path);
}

// Returns false if the place is read-only and has another value.
template <class T>
bool CompactWeights::put(T& place, T value) const {
  if (file_ && !file_->writable()) return std::memcmp(&place, &value, sizeof value) == 0;
  place = value;
  return true;
}

Error CompactWeights::wrong(std::size_t parameter, float value) const {
  return invalid(layout_->describe(parameter) + " is " + number_text(static_cast<double>(value)) +
                 ", which is not a value of model.base_dtype = \"" +
                 base_dtype_names().at(static_cast<std::size_t>(dtype_)) +
                 "\"; update this client or the coordinator, whichever is older");
}

Error CompactWeights::differs(std::size_t parameter) const {
  return {ErrorCode::kStale,
          "the file of frozen weights has another value of " + layout_->describe(parameter)};
}

std::size_t CompactWeights::group_of(std::size_t tensor, std::size_t parameter) const {
  return first_groups_[tensor] + (parameter - layout_->tensors()[tensor].offset) / kInt8Group;
}

Result<void> CompactWeights::add(std::size_t begin, std::span<const float> values) {
  FEDGE_CHECK(begin + values.size() <= layout_->size(), "parameters of the layout");
  for (const TensorInfo& tensor : layout_->tensors()) {
    const std::size_t from = std::max(begin, tensor.offset);
    const std::size_t to = std::min(begin + values.size(), tensor.offset + tensor.size);
    if (from < to && holds(tensor))
      FEDGE_TRY_VOID(add_part(tensor, from, values.subspan(from - begin, to - from)));
  }
  return {};
}

Result<void> CompactWeights::add_part(const TensorInfo& tensor, std::size_t begin,
                                      std::span<const float> values) {
  if (dtype_ == BaseDtype::kFloat32) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!put(floats_[begin + i], values[i])) return differs(begin + i);
    return {};
  }
  if (dtype_ == BaseDtype::kBfloat16) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t half = bfloat16_of(values[i]);
      if (std::bit_cast<std::uint32_t>(values[i]) != std::uint32_t{half} << 16U)
        return wrong(begin + i, values[i]);
      if (!put(halves_[begin + i], half)) return differs(begin + i);
    }
    return {};
  }
  const std::size_t end = tensor.offset + tensor.size;
  for (std::size_t done = 0; done < values.size();) {
    const std::size_t at = begin + done;
    const std::size_t first = at - (at - tensor.offset) % kInt8Group;
    const std::size_t group = std::min(kInt8Group, end - first);
    const auto part = values.subspan(done, std::min(first + group - at, values.size() - done));
    done += part.size();
    if (part.size() == group) {
      FEDGE_TRY_VOID(add_group(at, part));
      continue;
    }
    if (at == first) {
      open_begin_ = first;
      open_count_ = 0;
    }
    if (at != open_begin_ + open_count_) continue;  // its beginning was not wanted
    std::ranges::copy(part, open_.begin() + static_cast<std::ptrdiff_t>(open_count_));
    open_count_ += part.size();
    if (open_count_ == group) FEDGE_TRY_VOID(add_group(first, std::span(open_).first(group)));
  }
  return {};
}

Result<void> CompactWeights::add_group(std::size_t begin, std::span<const float> values) {
  const float scale = scale_of(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int8_t level = level_of(values[i], scale);
    if (std::bit_cast<std::uint32_t>(values[i]) !=
        std::bit_cast<std::uint32_t>(static_cast<float>(level) * scale))
      return wrong(begin + i, values[i]);
    if (!put(levels_[begin + i], level)) return differs(begin + i);
  }
  const TensorInfo& tensor = layout_->tensor_at(begin);
  const auto index = static_cast<std::size_t>(&tensor - layout_->tensors().data());
  if (!put(scales_[group_of(index, begin)], scale)) return differs(begin);
  return {};
}

void CompactWeights::expand(const Range& parameters, float* values) const {
  if (dtype_ == BaseDtype::kFloat32) {
    std::copy_n(floats_ + parameters.begin, parameters.size(), values);
    return;
  }
  if (dtype_ == BaseDtype::kBfloat16) {
    const std::uint16_t* halves = halves_ + parameters.begin;
    for (std::size_t i = 0; i < parameters.size(); ++i) values[i] = float_of_bfloat16(halves[i]);
    return;
  }
  const TensorInfo& tensor = layout_->tensor_at(parameters.begin);
  const auto index = static_cast<std::size_t>(&tensor - layout_->tensors().data());
  for (std::size_t at = parameters.begin; at < parameters.end;) {
    const std::size_t end = std::min(parameters.end, at + kInt8Group - (at - tensor.offset) % kInt8Group);
    const float scale = scales_[group_of(index, at)];
    const std::int8_t* levels = levels_ + at;
    for (std::size_t i = 0; i < end - at; ++i) values[i] = static_cast<float>(levels[i]) * scale;
    values += end - at;
    at = end;
  }
}

}  // namespace fedge::learn
