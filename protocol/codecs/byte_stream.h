// ByteStream: a payload's bytes in order, across chunk borders and decompressed, for the decoders. Holds
// one chunk and, with zstd, its window and a block: about 650 KB besides the chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/result.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/codecs/little_endian.h"

namespace fedge::protocol {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Reads the next out.size() bytes; kCorrupt if the payload ends too early.
  Result<void> read(std::span<std::byte> out);
  Result<std::uint8_t> read_byte();
  template <class T>
  Result<void> read_values(std::span<T> out) {
    FEDGE_TRY_VOID(read(std::as_writable_bytes(out)));
    for (T& value : out) value = swapped_if_big_endian(value);
    return {};
  }
  // Whether everything has been read. Tries to read on, and so also reports errors at the end.
  Result<bool> at_end();
  // All available bytes, at least one; empty at the end. Valid until the next call.
  Result<std::span<const std::byte>> take_some();

 protected:
  // The next bytes; empty at the end. Invalidates those returned before.
  virtual Result<std::span<const std::byte>> refill() = 0;

 private:
  std::span<const std::byte> window_;
};

// The chunks of an object in order. `chunks` must outlive the stream; the manifest need not.
std::unique_ptr<ByteStream> make_chunk_stream(const Manifest& manifest, ChunkSource& chunks);

// The contents of one zstd frame, which must be exactly raw_size bytes; nothing may follow the frame.
std::unique_ptr<ByteStream> make_zstd_stream(std::unique_ptr<ByteStream> packed, std::uint64_t raw_size);

}  // namespace fedge::protocol
