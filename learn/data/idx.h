// IDX: the file format of MNIST (LeCun, Cortes, Burges): a big-endian header with element type and
// dimensions, then row-major bytes. Files may be plain or one gzip member, whose CRC-32 is checked. IdxReader
// returns the elements piece by piece, so that the file is never unpacked as a whole. It supports only
// unsigned bytes. The caller must keep the file's bytes alive. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::learn {

class IdxReader {
 public:
  // Reads the header. `rank`: the number of dimensions; 0: any. `name` begins every message. kCorrupt for
  // another element type than unsigned byte, another number of dimensions, a dimension of 0, or more elements
  // than the bytes can contain (deflate packs at most 1032 to 1). A caller may therefore allocate elements()
  // before reading them.
  static Result<IdxReader> open(std::span<const std::byte> bytes, const std::string& name, std::size_t rank);
  ~IdxReader();
  IdxReader(IdxReader&&) noexcept;
  IdxReader& operator=(IdxReader&&) noexcept;

  const std::vector<std::size_t>& dimensions() const { return dimensions_; }
  std::size_t elements() const { return elements_; }  // product of dimensions()

  // Reads the next out.size() elements; kCorrupt if the file is truncated or its compressed data is damaged.
  Result<void> read(std::span<std::uint8_t> out);
  // Must be called after the last element: kCorrupt if bytes follow or the checksum differs.
  Result<void> finish();

 private:
  class Source;
  IdxReader(std::unique_ptr<Source> source, std::string name);

  std::unique_ptr<Source> source_;
  std::string name_;
  std::vector<std::size_t> dimensions_;
  std::size_t elements_ = 0;
};

}  // namespace fedge::learn
