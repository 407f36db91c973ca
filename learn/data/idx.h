// IDX: the file format of MNIST and its kin (LeCun, Cortes, Burges): big-endian header with element
// type and dimensions, then row-major bytes; plain or in one gzip member, whose CRC-32 is checked.
// IdxReader hands the elements out piece by piece from the file's bytes, so that nothing is ever
// unpacked as a whole; it borrows those bytes. One thread. Only unsigned bytes are read.
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
  // Reads the header. `name` stands in front of every message. Refuses another element type than
  // unsigned byte, another number of dimensions than `rank`, a dimension of 0, and more elements
  // than the bytes can hold (deflate packs at most 1032 to 1), so that a caller may allocate
  // elements() before reading them.
  static Result<IdxReader> open(std::span<const std::byte> bytes, const std::string& name, std::size_t rank);
  ~IdxReader();
  IdxReader(IdxReader&&) noexcept;
  IdxReader& operator=(IdxReader&&) noexcept;

  const std::vector<std::size_t>& dimensions() const { return dimensions_; }
  std::size_t elements() const { return elements_; }  // product of dimensions()

  // The next out.size() elements; kCorrupt if the file ends before or its packing is damaged.
  Result<void> read(std::span<std::uint8_t> out);
  // To be called after the last element: kCorrupt if bytes follow it or the checksum differs.
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
