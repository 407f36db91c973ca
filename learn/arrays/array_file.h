// ArrayStream: reads one array of a file, piece by piece: of a NumPy .npz archive, a NumPy .npy file, a
// safetensors file, or an IDX file of unsigned bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "learn/arrays/npy.h"

namespace fedge::learn {

// Whether this is the name of an IDX file: it ends with -ubyte or .idx, or that and .gz.
bool is_idx_name(std::string_view name);

class ArrayStream {
 public:
  // Opens a .npy or an IDX file, or the array `array` of a .npz archive or a .safetensors file. kUnsupported
  // for files of other names. kNotFound if there is no such file or array; kCorrupt if the number of bytes
  // does not fit the header, so that a caller may allocate header().elements of them: deflate packs at most
  // 1032 to 1.
  static Result<ArrayStream> open(const std::filesystem::path& path, const std::string& array);
  ~ArrayStream();
  ArrayStream(ArrayStream&&) noexcept;
  ArrayStream& operator=(ArrayStream&&) noexcept;

  const NpyHeader& header() const { return header_; }
  // "FILE: array NAME", for messages.
  const std::string& name() const { return name_; }
  // Reads the next bytes.size() bytes of the elements; kCorrupt if the file is damaged or truncated.
  Result<void> read(std::span<std::byte> bytes);
  // Must be called after the last element: kCorrupt if the archive's checksum differs.
  Result<void> finish();

 private:
  class Source;
  class FileSource;
  class IdxSource;
  class ArchiveSource;
  ArrayStream(std::unique_ptr<Source> source, std::string name);
  static Result<ArrayStream> open_npy(std::unique_ptr<Source> source, std::string name);

  std::unique_ptr<Source> source_;
  std::string name_;
  NpyHeader header_;
};

}  // namespace fedge::learn
