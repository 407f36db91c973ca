// Control messages to and from the protobuf headers of frames. decode() is where a peer's message
// becomes a value that satisfies every bound of messages.h; it never crashes, and allocates no more
// than a small multiple of the bytes it is given. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"
#include "protocol/frame.h"
#include "protocol/messages.h"

namespace fedge::protocol {

MessageType type_of(const Message& message);

// The header's bytes. Reasons and program names are cut and cleaned to what a peer accepts; every
// other bound is the caller's to keep, since a peer refuses what breaks it.
std::string encode(const Message& message);
// The header's bytes with the frame header in front: what goes onto a link.
std::string encode_frame(const Message& message);
// A frame that is only its type: Ping, Pong.
std::string encode_empty_frame(MessageType type);
// Bytes of encode_frame(message).
std::size_t frame_size(const Message& message);

// kInvalid names the message and the field; kUnsupported for a type that is not a control message.
Result<Message> decode(MessageType type, std::span<const std::byte> header);

}  // namespace fedge::protocol
