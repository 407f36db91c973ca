// The frames that move chunks. They never leave a link, so they are not part of Message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// Credit: the peer may send the chunks [first, first + count) of this object.
struct ChunkRequest {
  ObjectId object{};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const ChunkRequest&) const = default;
};

// The frame's payload is this chunk.
struct Chunk {
  ObjectId object{};
  std::uint32_t index = 0;
  bool operator==(const Chunk&) const = default;
};

// These chunks were asked for and will not come.
struct ChunkRefused {
  ObjectId object{};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Error error;
};

std::string encode_frame(const ChunkRequest& request);
std::string encode_frame(const ChunkRefused& refused);
// Both headers; the payload of this many bytes follows them.
std::string encode_frame(const Chunk& chunk, std::size_t payload_size);
// All of such a frame; but for the payload it is the same whatever the object.
Bytes chunk_frame_size(std::uint32_t index, std::size_t payload_size);

Result<ChunkRequest> decode_chunk_request(std::span<const std::byte> header);
Result<ChunkRefused> decode_chunk_refused(std::span<const std::byte> header);
Result<Chunk> decode_chunk(std::span<const std::byte> header);

}  // namespace fedge::protocol
