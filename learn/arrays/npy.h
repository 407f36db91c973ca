// NPY: the file format of a NumPy array (NumPy Enhancement Proposal 1; versions 1 to 3): a magic number, a
// header that is a Python dictionary, then the elements. Fedge reads arrays of numbers in little-endian byte
// order and C order. It never unpickles: an array of objects is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::learn {

enum class ElementType : std::uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64
};

std::size_t bytes_of(ElementType type);
// Whether its values are integers; true and false are 1 and 0.
bool is_integer(ElementType type);
// NumPy's name of the type: "float32".
const char* name_of(ElementType type);
// Converts little-endian elements to double; integers above 2^53 are rounded. `bytes` holds out.size() of
// them.
void to_doubles(ElementType type, std::span<const std::byte> bytes, std::span<double> out);

struct NpyHeader {
  ElementType type = ElementType::kFloat32;
  std::vector<std::size_t> shape;  // empty: one number
  std::size_t elements = 0;        // product of the shape
};

inline constexpr std::size_t kNpyPreamble = 12;  // bytes that are enough for npy_data_offset()

// Where the elements begin, in bytes from the file's start. `start`: the first kNpyPreamble bytes. Messages
// begin with `name`. kCorrupt if this is not the start of an NPY file.
Result<std::size_t> npy_data_offset(std::span<const std::byte> start, const std::string& name);
// Parses everything before the elements. kCorrupt if it is malformed; kUnsupported for elements of another
// type, another byte order, Fortran order, or more than 2^48 elements.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> start, const std::string& name);

}  // namespace fedge::learn
