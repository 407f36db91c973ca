// CompactWeights: the matrices of a model that are not trained, kept apart from the others: in fewer bits
// than float32 (model.base_dtype), or in a file that processes share. A pass expands them, if they are not
// float32, where it multiplies with them. float32 holds each of their values exactly, and the base is rounded
// to such values before a run begins, so a client computes the same bits with and without them.
//   float32    as they are: 4 bytes
//   bfloat16   the upper half of a float32: 2 bytes
//   int8       s q for each of kInt8Group consecutive values of a matrix, q from -127 to 127, s a float32 of
//              16 significant bits for which the largest |q| is 127: 1 + 1/16 bytes. Absmax rounding by
//              blocks (Dettmers et al., ICLR 2022, section 2.1), here with equal steps
// Reading is thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parameters.h"
#include "core/platform/shared_file.h"
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
  // All zeros, in memory of its own.
  CompactWeights(std::shared_ptr<const ParameterLayout> layout, BaseDtype dtype);
  // In a file of bytes_of() bytes: a new one, or a published one that weights of the same layout and type
  // have filled, which is only compared with what add() takes.
  CompactWeights(std::shared_ptr<const ParameterLayout> layout, BaseDtype dtype, SharedFile file);
  static std::size_t bytes_of(const ParameterLayout& layout, BaseDtype dtype);

  // Whether this object holds the tensor: matrices that are not trained. The caller keeps all others.
  static bool holds(const TensorInfo& tensor) {
    return !tensor.trainable && tensor.shape.size() == 2 && tensor.order == TensorOrder::kRowMajor;
  }
  // Takes the values of consecutive parameters from `begin` on, as far as it holds them. Calls must be in the
  // order of the parameters. int8: values of a group that is never complete stay 0. kInvalid, naming the
  // parameter, if a value is not one of this type; kStale if a published file has another.
  Result<void> add(std::size_t begin, std::span<const float> values);
  // float32: the values, each at the index of its parameter; otherwise null.
  const float* floats() const { return floats_; }
  // Writes consecutive values of one matrix.
  void expand(const Range& parameters, float* values) const;
  // Gives the new file this name, so that other objects can open it.
  Result<void> publish(const std::filesystem::path& path);

 private:
  CompactWeights(std::shared_ptr<const ParameterLayout> layout, BaseDtype dtype,
                 AlignedBuffer<std::byte> memory, std::optional<SharedFile> file);
  Result<void> add_part(const TensorInfo& tensor, std::size_t begin, std::span<const float> values);
  Result<void> add_group(std::size_t begin, std::span<const float> values);
  Error wrong(std::size_t parameter, float value) const;
  std::size_t group_of(std::size_t tensor, std::size_t parameter) const;

  template <class T>
  bool put(T& place, T value) const;
  Error differs(std::size_t parameter) const;

  std::shared_ptr<const ParameterLayout> layout_;
  BaseDtype dtype_;
  std::vector<std::size_t> first_groups_;  // of each tensor
  // One of the two has the bytes.
  AlignedBuffer<std::byte> memory_;
  std::optional<SharedFile> file_;
  // The value of a parameter is at its index, in one of these. In memory, large parts that are never written
  // take no room.
  float* floats_ = nullptr;
  std::uint16_t* halves_ = nullptr;
  std::int8_t* levels_ = nullptr;
  float* scales_ = nullptr;  // of the groups, in front of the levels
  // int8: the beginning of a group whose other values have not come yet.
  std::array<float, kInt8Group> open_{};
  std::size_t open_begin_ = 0;
  std::size_t open_count_ = 0;
};

}  // namespace fedge::learn
