// One array of a safetensors file, whose types may be others than a model's float32 (core/safetensors.h).
#pragma once

#include <cstdint>
#include <string>

#include "core/platform/files.h"
#include "core/result.h"
#include "learn/arrays/npy.h"

namespace fedge::learn {

struct SafetensorsArray {
  NpyHeader header;
  std::uint64_t offset = 0;  // of its first element in the file
};

// Finds an array by its name. kNotFound if the file has none of this name; kCorrupt for a damaged header or
// an array whose size does not fit its shape, or that reaches beyond the file; kUnsupported for an element
// type that NumPy does not have, such as BF16.
Result<SafetensorsArray> find_safetensors_array(const ReadOnlyFile& file, const std::string& array);

// The format's name of an element type: "F32".
const char* safetensors_name(ElementType type);

}  // namespace fedge::learn
