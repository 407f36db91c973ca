// Writes arrays to a safetensors file, atomically (write_file_atomic()).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "learn/arrays/npy.h"

namespace fedge::learn {

struct ArrayOut {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;  // of all elements, little-endian, in C order
};

// The header is padded so that the first array is aligned for float32. A new file gets this mode.
Result<void> write_safetensors(std::span<const ArrayOut> arrays, const std::filesystem::path& path,
                               unsigned mode = 0644);

}  // namespace fedge::learn
