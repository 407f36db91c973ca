// Converts control messages to and from the protobuf headers of frames. decode() turns a peer's bytes into
// a value that satisfies every bound of messages.h. It never crashes, and allocates at most a small
// multiple of its input. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "core/result.h"
#include "protocol/frame.h"
#include "protocol/messages.h"

namespace fedge::protocol {

// The header's bytes. Reasons and program names are cleaned and shortened; the caller must keep every other
// bound, because a peer refuses a message that violates one.
std::string encode(const Message& message);
// Frame header and header: the bytes to send.
std::string encode_frame(const Message& message);
// A frame without a header: Ping, Pong.
std::string encode_empty_frame(MessageType type);
// Bytes of encode_frame(message).
std::size_t frame_size(const Message& message);

// kInvalid names the message and the field; kUnsupported for a type that is not a control message.
Result<Message> decode(MessageType type, std::span<const std::byte> header);
template <class T>
Result<T> decode(std::span<const std::byte> header) {
  FEDGE_TRY(message, decode(kTypeOf<T>, header));
  return std::get<T>(std::move(message));
}

}  // namespace fedge::protocol
