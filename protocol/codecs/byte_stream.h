// ByteStream: a payload's bytes in order, across chunk borders and out of zstd, for the decoders.
// Holds one chunk and, with zstd, its window and a block: about 650 KB besides the chunk.
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
  // The next out.size() bytes; kCorrupt if the payload ends before.
  Result<void> read(std::span<std::byte> out);
  Result<std::uint8_t> read_byte();
  template <class T>
  Result<void> read_values(std::span<T> out) {
    FEDGE_TRY_VOID(read(std::as_writable_bytes(out)));
    for (T& value : out) value = swapped_if_big_endian(value);
    return {};
  }
  // Whether all has been read. Looks for more, so it finds what is wrong with the end as well.
  Result<bool> at_end();
  // All that is at hand, at least one byte; empty at the end. Valid until the next call.
  Result<std::span<const std::byte>> take_some();

 protected:
  // The next bytes after those it returned last, which are gone; empty at the end.
  virtual Result<std::span<const std::byte>> refill() = 0;

 private:
  std::span<const std::byte> window_;
};

// The chunks of an object one after the other. `chunks` outlives the stream, the manifest need not.
std::unique_ptr<ByteStream> make_chunk_stream(const Manifest& manifest, ChunkSource& chunks);

// What one zstd frame holds, which must be exactly raw_size bytes; nothing may follow the frame.
std::unique_ptr<ByteStream> make_zstd_stream(std::unique_ptr<ByteStream> packed, std::uint64_t raw_size);

}  // namespace fedge::protocol
