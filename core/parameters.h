// ParameterLayout names the tensors of a model inside one flat float32 vector; ParameterVector is that
// vector. Tensors are views, never copies; an update, a gradient and a model have the same layout. A layout
// is immutable once built and shared by pointer; its hash identifies it in the protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/crypto/sha256.h"

namespace fedge {

// Rank-major: the first dimension is an adapter's rank, so that a rank prefix is one range.
enum class TensorOrder : std::uint8_t { kRowMajor = 0, kRankMajor = 1 };

struct TensorInfo {
  std::string name;                // e.g. "dense1.weight"
  std::vector<std::size_t> shape;  // outermost dimension first; all positive
  std::size_t offset = 0;          // first parameter, in floats
  std::size_t size = 0;            // product of shape
  std::uint32_t layer = 0;         // index of the layer it belongs to
  bool trainable = true;
  TensorOrder order = TensorOrder::kRowMajor;
};

struct TensorOptions {
  std::uint32_t layer = 0;
  bool trainable = true;
  TensorOrder order = TensorOrder::kRowMajor;
};

class ParameterLayout {
 public:
  // Appends a tensor; the name must be new and every dimension positive.
  ParameterLayout& add(std::string name, std::vector<std::size_t> shape, TensorOptions options = {});

  std::size_t size() const { return size_; }  // floats
  std::size_t size_bytes() const { return size_ * sizeof(float); }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;
  // The tensor that holds this parameter, for error messages; index < size().
  const TensorInfo& tensor_at(std::size_t index) const;
  // The parameter's name for messages: "dense1.weight[1234]"; index < size().
  std::string describe(std::size_t index) const;
  // The parameters of all trainable tensors.
  Coverage trainable() const;
  // SHA-256 over a canonical string of every tensor's name, shape, layer, flags and order.
  Digest hash() const;

 private:
  std::vector<TensorInfo> tensors_;
  std::size_t size_ = 0;
};

class ParameterVector {
 public:
  ParameterVector() = default;
  // All zeros.
  explicit ParameterVector(std::shared_ptr<const ParameterLayout> layout, Pages pages = Pages::kHuge)
      : layout_(std::move(layout)), values_(layout_->size(), pages) {}

  ParameterVector clone() const;

  const ParameterLayout& layout() const { return *layout_; }
  const std::shared_ptr<const ParameterLayout>& shared_layout() const { return layout_; }
  std::size_t size() const { return values_.size(); }
  std::span<float> values() { return values_.span(); }
  std::span<const float> values() const { return values_.span(); }
  std::span<float> tensor(const TensorInfo& info) { return values().subspan(info.offset, info.size); }
  std::span<const float> tensor(const TensorInfo& info) const {
    return values().subspan(info.offset, info.size);
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(values()); }

 private:
  std::shared_ptr<const ParameterLayout> layout_;
  AlignedBuffer<float> values_;
};

// The model hash that every report prints: SHA-256 of the parameters as little-endian float32 in layout
// order, which is also the data section of the exported .safetensors file.
Digest model_hash(std::span<const float> values);

}  // namespace fedge
