// safetensors: the file format in which a model leaves and enters Fedge (Hugging Face; opens in
// Python as is). Eight bytes of little-endian header length, a JSON header padded with spaces to a
// multiple of eight, then the tensors. Fedge writes float32 in layout order, so that the data section
// is the flat parameter vector byte for byte and its SHA-256 is the model hash.
// The reader trusts nothing: it is bounded before it allocates and refuses what it does not know.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

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

// What comes before the data: length and header. `metadata` becomes __metadata__ if not empty; bytes
// in it that are not UTF-8 are replaced. kInvalid for a tensor named __metadata__ or a header that
// would be too long to be read back.
Result<std::string> safetensors_header(const ParameterLayout& layout,
                                       const std::map<std::string, std::string>& metadata);

struct SafetensorsHeader {
  ParameterLayout layout;  // tensors in the order of their data, all in layer 0
  std::map<std::string, std::string> metadata;
  std::size_t data_offset = 0;  // in the file; the data are layout.size() floats
};
// A file whose values are to be in memory: kResource above max_bytes, or half of this machine's memory, for a
// file with holes takes no room on a disk.
Result<ReadOnlyFile> open_safetensors(const std::filesystem::path& path, std::size_t max_bytes);
// Only the beginning of a file: its values can then be read in pieces.
Result<SafetensorsHeader> read_safetensors_header(const ReadOnlyFile& file);

// Header and data, whole or not at all.
Result<void> write_safetensors(const std::filesystem::path& path, const ParameterVector& values,
                               const std::map<std::string, std::string>& metadata);

// Takes a file's bytes apart; `name` stands in front of every message. kUnsupported for another type
// than F32, kCorrupt for what breaks the format: tensors that overlap, leave a hole or do not fill the
// file, sizes that do not match their shapes, names that come twice.
Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes, const std::string& name);
Result<Safetensors> read_safetensors(const std::filesystem::path& path, std::size_t max_bytes);
// The rest of a file whose header has been read.
Result<Safetensors> read_safetensors(const ReadOnlyFile& file, SafetensorsHeader header);
// Of a whole file's bytes the same checks, and where the values are, which stay where they are.
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> bytes, const std::string& name);

// Whether `have` holds the tensors of `want`, in any order. kInvalid if one is missing, left over or of
// another shape: it names the tensor and both shapes.
Result<void> check_same_tensors(const ParameterLayout& have, const ParameterLayout& want);
// The same tensors in the order of `layout`, found by name; the errors are check_same_tensors'.
Result<ParameterVector> arrange(const ParameterVector& values, std::shared_ptr<const ParameterLayout> layout);

}  // namespace fedge
