// safetensors: the file format for importing and exporting models (Hugging Face; Python opens it directly).
// Eight bytes of little-endian header length, a JSON header padded with spaces to a multiple of eight, then
// the tensors. Fedge writes float32 in layout order: the data section equals the flat parameter vector byte
// for byte, and its SHA-256 is the model hash. The reader trusts nothing: it checks bounds before it
// allocates and refuses unknown fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/parameters.h"
#include "core/platform/files.h"
#include "core/result.h"

namespace fedge {

inline constexpr std::size_t kMaxSafetensorsHeader = std::size_t{16} << 20;
inline constexpr std::size_t kMaxSafetensorsTensors = 16'384;

struct Safetensors {
  ParameterVector values;                       // tensors in the order of their data, all in layer 0
  std::map<std::string, std::string> metadata;  // the header's __metadata__
};

// The bytes before the data: length and header. `metadata`, if not empty, becomes __metadata__; its bytes
// that are not UTF-8 are replaced. kInvalid for a tensor named __metadata__ or a header longer than the
// reader accepts.
Result<std::string> safetensors_header(const ParameterLayout& layout,
                                       const std::map<std::string, std::string>& metadata);

struct SafetensorsHeader {
  ParameterLayout layout;  // tensors in the order of their data, all in layer 0
  std::map<std::string, std::string> metadata;
  std::size_t data_offset = 0;  // in the file; the data are layout.size() floats
};
// Opens a file whose values will be held in memory. kResource above max_bytes or half of this machine's
// memory: a sparse file may be larger than any disk.
Result<ReadOnlyFile> open_safetensors(const std::filesystem::path& path, std::size_t max_bytes);
// Reads only the header; the values can then be read in pieces.
Result<SafetensorsHeader> read_safetensors_header(const ReadOnlyFile& file);

// A tensor of any element type in a file.
struct StoredTensor {
  std::string name;
  std::string dtype;  // "F32", "BF16" ...
  std::vector<std::size_t> shape;
  std::uint64_t offset = 0;  // in the file, where its `bytes` bytes are
  std::uint64_t bytes = 0;
};
struct TensorTable {
  std::vector<StoredTensor> tensors;  // in the order of the header
  std::map<std::string, std::string> metadata;
};
// Reads the header of a file whose tensors have any element type, for example one that another program wrote.
// kCorrupt if a tensor's bytes are not those of its shape, or not in the file; kUnsupported for an unknown
// element type.
Result<TensorTable> read_tensor_table(const ReadOnlyFile& file);

// Writes header and data atomically.
Result<void> write_safetensors(const std::filesystem::path& path, const ParameterVector& values,
                               const std::map<std::string, std::string>& metadata);

Result<Safetensors> read_safetensors(const std::filesystem::path& path, std::size_t max_bytes);
// Reads the values of a file whose header has been read.
Result<Safetensors> read_safetensors(const ReadOnlyFile& file, SafetensorsHeader header);
// Parses the header of a whole file's bytes; `name` precedes every message. kUnsupported for a type other
// than F32; kCorrupt for format errors: tensors that overlap, leave a gap or do not fill the file, sizes that
// do not match their shapes, duplicate names.
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> bytes, const std::string& name);

// Checks that `have` holds exactly the tensors of `want`, in any order. kInvalid if one is missing, extra or
// of another shape; the message names the tensor and both shapes.
Result<void> check_same_tensors(const ParameterLayout& have, const ParameterLayout& want);
// The same tensors in the order of `layout`, matched by name; errors as check_same_tensors().
Result<ParameterVector> arrange(const ParameterVector& values, std::shared_ptr<const ParameterLayout> layout);

}  // namespace fedge
