// The frames that transfer chunks. Only Link handles them, so they are not part of Message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// Credit: the receiver may send the chunks [first, first + count) of this object.
struct ChunkRequest {
  ObjectId object{};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const ChunkRequest&) const = default;
};

// The frame's payload is the bytes of this chunk.
struct Chunk {
  ObjectId object{};
  std::uint32_t index = 0;
  bool operator==(const Chunk&) const = default;
};

// The sender will not send these requested chunks.
struct ChunkRefused {
  ObjectId object{};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Error error;
};

std::string encode_frame(const ChunkRequest& request);
std::string encode_frame(const ChunkRefused& refused);
// Frame header and header; payload_size bytes of payload must follow.
std::string encode_frame(const Chunk& chunk, std::size_t payload_size);
// Size of the whole frame. Apart from the payload it is the same for every object.
Bytes chunk_frame_size(std::uint32_t index, std::size_t payload_size);

Result<ChunkRequest> decode_chunk_request(std::span<const std::byte> header);
Result<ChunkRefused> decode_chunk_refused(std::span<const std::byte> header);
Result<Chunk> decode_chunk(std::span<const std::byte> header);

}  // namespace fedge::protocol
