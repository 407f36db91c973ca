// ZstdCompressor: bytes into one zstd frame (RFC 8878) that a receiver takes: no dictionary, a window of
// 2^kZstdWindowLog. Not thread-safe. Its decoder is make_zstd_stream() in byte_stream.h.
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
  // The frame; nothing may be added after.
  std::vector<std::byte> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::protocol
