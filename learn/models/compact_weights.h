// CompactWeights: the matrices of a model that are not trained, in fewer bits than float32
// (model.base_dtype). A pass expands them where it multiplies with them. float32 holds each of their values
// exactly, and the base is rounded to such values before a run begins, so a client computes the same bits
// with and without them.
//   bfloat16   the upper half of a float32: 2 bytes
//   int8       s q for each of kInt8Group consecutive values of a matrix, q from -127 to 127, s a float32 of
//              16 significant bits for which the largest |q| is 127: 1 + 1/16 bytes. Absmax rounding by
//              blocks (Dettmers et al., ICLR 2022, section 2.1), here with equal steps
// Reading is thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parameters.h"
#include "core/result.h"

namespace fedge::learn {

enum class BaseDtype : std::uint8_t { kFloat32, kBfloat16, kInt8 };

const std::vector<std::string>& base_dtype_names();

inline constexpr std::size_t kInt8Group = 64;

// Rounds the matrices that are not trained to values of this type; all others stay. The values must be
// finite. Rounded values stay as they are.
void round_base(const ParameterLayout& layout, BaseDtype dtype, std::span<float> values);

class CompactWeights {
 public:
  // All zeros. `dtype` is not float32.
  CompactWeights(std::shared_ptr<const ParameterLayout> layout, BaseDtype dtype);

  // Whether this object holds the tensor: matrices that are not trained. The caller keeps all others.
  static bool holds(const TensorInfo& tensor) {
    return !tensor.trainable && tensor.shape.size() == 2 && tensor.order == TensorOrder::kRowMajor;
  }
  // Takes the values of consecutive parameters from `begin` on, as far as it holds them. Calls must be in the
  // order of the parameters. int8: values of a group that is never complete stay 0. kInvalid, naming the
  // parameter, if a value is not one of this type.
  Result<void> add(std::size_t begin, std::span<const float> values);
  // Writes consecutive values of one matrix.
  void expand(const Range& parameters, float* values) const;

 private:
  Result<void> add_part(const TensorInfo& tensor, std::size_t begin, std::span<const float> values);
  Result<void> add_group(std::size_t begin, std::span<const float> values);
  Error wrong(std::size_t parameter, float value) const;
  std::size_t group_of(std::size_t tensor, std::size_t parameter) const;

  std::shared_ptr<const ParameterLayout> layout_;
  BaseDtype dtype_;
  // Both have the value of a parameter at its index. Large parts that are never written take no memory.
  AlignedBuffer<std::uint16_t> halves_;
  AlignedBuffer<std::int8_t> levels_;
  AlignedBuffer<float> scales_;            // of the groups
  std::vector<std::size_t> first_groups_;  // of each tensor
  // int8: the beginning of a group whose other values have not come yet.
  std::array<float, kInt8Group> open_{};
  std::size_t open_begin_ = 0;
  std::size_t open_count_ = 0;
};

}  // namespace fedge::learn
