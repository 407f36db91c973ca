#include "protocol/chunks/chunk_messages.h"

#include <algorithm>

#include "core/text.h"
#include "protocol/detail/wire_values.h"

namespace fedge::protocol {
namespace {

// Parses object and range, which a request and a refusal have in common.
template <class Value, class Wire>
Result<Value> range_from_wire(const Wire& wire, const char* name) {
  Value value;
  auto object = digest_from_wire(wire.object());
  if (!object) return object.error().with_prefix(std::string(name) + ": object: ");
  if (wire.count() == 0 || wire.count() > kMaxChunks || wire.first() > kMaxChunks - wire.count())
    return invalid(std::string(name) + ": invalid range of chunks: first = " + std::to_string(wire.first()) +
                   ", count = " + std::to_string(wire.count()));
  value.object = *object;
  value.first = wire.first();
  value.count = wire.count();
  return value;
}

Error malformed(const char* name) {
  return invalid(std::string(name) + ": its bytes are not a valid protobuf message");
}

}  // namespace

std::string encode_frame(const ChunkRequest& request) {
  v1::ChunkRequest wire;
  wire.set_object(to_wire(request.object));
  wire.set_first(request.first);
  wire.set_count(request.count);
  return frame_around(MessageType::kChunkRequest, serialise(wire));
}

std::string encode_frame(const ChunkRefused& refused) {
  v1::ChunkRefused wire;
  wire.set_object(to_wire(refused.object));
  wire.set_first(refused.first);
  wire.set_count(refused.count);
  wire.set_code(to_wire(refused.error.code));
  wire.set_reason(clean_text(refused.error.message, kMaxText));
  return frame_around(MessageType::kChunkRefused, serialise(wire));
}

std::string encode_frame(const Chunk& chunk, std::size_t payload_size) {
  v1::Chunk wire;
  wire.set_object(to_wire(chunk.object));
  wire.set_index(chunk.index);
  std::string frame = frame_around(MessageType::kChunk, serialise(wire));
  const FrameHeaderBytes fixed =
      encode_frame_header({.type = MessageType::kChunk,
                           .header_size = static_cast<std::uint32_t>(frame.size() - kFrameHeaderSize),
                           .payload_size = static_cast<std::uint32_t>(payload_size)});
  std::copy(fixed.begin(), fixed.end(), reinterpret_cast<std::byte*>(frame.data()));
  return frame;
}

Result<ChunkRequest> decode_chunk_request(std::span<const std::byte> header) {
  v1::ChunkRequest wire;
  if (!parse_wire(wire, header)) return malformed("chunk_request");
  return range_from_wire<ChunkRequest>(wire, "chunk_request");
}

Result<ChunkRefused> decode_chunk_refused(std::span<const std::byte> header) {
  v1::ChunkRefused wire;
  if (!parse_wire(wire, header)) return malformed("chunk_refused");
  FEDGE_TRY(refused, range_from_wire<ChunkRefused>(wire, "chunk_refused"));
  FEDGE_TRY_VOID(check_text(wire.reason(), kMaxText, "chunk_refused: reason"));
  refused.error = {from_wire(wire.code()), wire.reason()};
  return refused;
}

Result<Chunk> decode_chunk(std::span<const std::byte> header) {
  v1::Chunk wire;
  if (!parse_wire(wire, header)) return malformed("chunk");
  auto object = digest_from_wire(wire.object());
  if (!object) return object.error().with_prefix("chunk: object: ");
  if (wire.index() >= kMaxChunks)
    return invalid("chunk: index " + std::to_string(wire.index()) + " is too large");
  return Chunk{*object, wire.index()};
}

Bytes chunk_frame_size(std::uint32_t index, std::size_t payload_size) {
  return Bytes(encode_frame(Chunk{.object = {}, .index = index}, payload_size).size() + payload_size);
}

}  // namespace fedge::protocol
