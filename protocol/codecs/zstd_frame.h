// ZstdCompressor: compresses bytes into one zstd frame (RFC 8878) that receivers accept: no dictionary, a
// window of 2^kZstdWindowLog. Not thread-safe. The decoder is make_zstd_stream() in byte_stream.h.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace fedge::protocol {

class ZstdCompressor {
 public:
  ZstdCompressor();
  ~ZstdCompressor();
  void add(std::span<const std::byte> bytes);
  // Returns the frame; call add() no more.
  std::vector<std::byte> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::protocol
