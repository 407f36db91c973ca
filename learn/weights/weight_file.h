// Weights in a file as it was published: tensors of several element types, read as float32. The formats that
// find the tensors are beside this file. Reading converts a piece at a time and holds no second copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/result.h"

namespace fedge::learn {

// The quantised types are GGML's: blocks of 32 elements with a scale d (binary16), which stand for
//   q8_0  d q, q from -128 to 127
//   q4_0  d (q - 8), q from 0 to 15; the first 16 elements are the low halves of 16 bytes
//   q4_1  d q + m, with a minimum m (binary16) after d
enum class WeightType { kFloat32, kFloat16, kBfloat16, kQ8_0, kQ4_0, kQ4_1 };

inline constexpr std::size_t kQuantisedBlock = 32;
// Bytes of this many elements; of a quantised type they must fill whole blocks.
std::uint64_t weight_bytes(WeightType type, std::uint64_t elements);

struct StoredWeight {
  std::string name;
  WeightType type = WeightType::kFloat32;
  std::vector<std::size_t> shape;  // outermost dimension first
  std::uint64_t offset = 0;        // in the file
  std::uint64_t elements() const;
};

class WeightFile {
 public:
  // kCorrupt, naming the tensor, if one does not lie in the file, or has a name that another has.
  static Result<WeightFile> make(ReadOnlyFile file, std::vector<StoredWeight> weights);

  const std::filesystem::path& path() const { return file_.path(); }
  const std::map<std::string, StoredWeight>& weights() const { return weights_; }
  // Null if there is none.
  const StoredWeight* find(const std::string& name) const;
  // Fills `out`, which has as many floats as the tensor has elements. kInvalid if a value is not finite.
  Result<void> read(const StoredWeight& weight, std::span<float> out) const;

 private:
  WeightFile(ReadOnlyFile file, std::map<std::string, StoredWeight> weights)
      : file_(std::move(file)), weights_(std::move(weights)) {}
  ReadOnlyFile file_;
  std::map<std::string, StoredWeight> weights_;
};

// The tensors of a .safetensors file that are F32, F16 or BF16; others are left out.
Result<WeightFile> open_safetensors_weights(const std::filesystem::path& path);

}  // namespace fedge::learn
