#include "core/parameters.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/check.h"

namespace fedge {

// Parameters are sent and hashed as little-endian float32, exactly as in memory.
static_assert(std::endian::native == std::endian::little, "big-endian machines need a byte swap on the wire");

ParameterLayout& ParameterLayout::add(std::string name, std::vector<std::size_t> shape,
                                      TensorOptions options) {
  FEDGE_CHECK(find(name) == nullptr, "two tensors of one name: " + name);
  TensorInfo info{std::move(name), std::move(shape),  size_,        1,
                  options.layer,   options.trainable, options.order};
  for (const std::size_t dimension : info.shape) {
    FEDGE_CHECK(dimension > 0, "tensor " + info.name + " has a dimension of size 0");
    info.size *= dimension;
  }
  size_ += info.size;
  tensors_.push_back(std::move(info));
  return *this;
}

const TensorInfo* ParameterLayout::find(std::string_view name) const {
  const auto it =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t.name == name; });
  return it == tensors_.end() ? nullptr : &*it;
}

const TensorInfo& ParameterLayout::tensor_at(std::size_t index) const {
  FEDGE_CHECK(index < size_, "parameter index beyond the layout");
  const auto after = std::upper_bound(tensors_.begin(), tensors_.end(), index,
                                      [](std::size_t i, const TensorInfo& t) { return i < t.offset; });
  return *std::prev(after);
}

std::string ParameterLayout::describe(std::size_t index) const {
  const TensorInfo& tensor = tensor_at(index);
  return tensor.name + "[" + std::to_string(index - tensor.offset) + "]";
}

Coverage ParameterLayout::trainable() const {
  std::vector<Range> ranges;
  for (const TensorInfo& tensor : tensors_)
    if (tensor.trainable) ranges.push_back({tensor.offset, tensor.offset + tensor.size});
  return Coverage::of(std::move(ranges));
}

Digest ParameterLayout::hash() const {
  std::string text = "fedge-layout-1\n";
  for (const TensorInfo& tensor : tensors_) {
    text += tensor.name;
    for (const std::size_t dimension : tensor.shape) text += ' ' + std::to_string(dimension);
    text += ";layer=" + std::to_string(tensor.layer) + ";trainable=" + (tensor.trainable ? "1" : "0") +
            ";order=" + std::to_string(static_cast<int>(tensor.order)) + "\n";
  }
  return sha256(text);
}

ParameterVector ParameterVector::clone() const {
  ParameterVector copy;
  copy.layout_ = layout_;
  copy.values_ = values_.clone();
  return copy;
}

Digest model_hash(std::span<const float> values) { return sha256(std::as_bytes(values)); }

}  // namespace fedge
