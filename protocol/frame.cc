#include "protocol/frame.h"

#include <algorithm>
#include <string>

namespace fedge::protocol {
namespace {

constexpr std::array<std::byte, 4> kStreamMagic = {std::byte{'F'}, std::byte{'D'}, std::byte{'G'},
                                                   std::byte{'1'}};

template <class Integer>
void put(std::span<std::byte> out, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    out[i] = static_cast<std::byte>(static_cast<std::uint8_t>(value >> (8 * i)));
}

template <class Integer>
Integer take(std::span<const std::byte> in) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    value = static_cast<Integer>(value | static_cast<Integer>(static_cast<Integer>(in[i]) << (8 * i)));
  return value;
}

Error too_long(const char* part, std::size_t size, std::size_t limit) {
  return {ErrorCode::kResource, std::string("a frame declares a ") + part + " of " + std::to_string(size) +
                                    " bytes; at most " + std::to_string(limit) + " are allowed here"};
}

}  // namespace

FrameHeaderBytes encode_frame_header(const FrameHeader& header) {
  FrameHeaderBytes bytes{};
  const std::span<std::byte> all(bytes);
  std::copy(kStreamMagic.begin(), kStreamMagic.end(), bytes.begin());
  put(all.subspan(4, 2), static_cast<std::uint16_t>(header.type));
  put(all.subspan(6, 2), std::uint16_t{0});  // flags: none is defined
  put(all.subspan(8, 4), header.header_size);
  put(all.subspan(12, 4), header.payload_size);
  return bytes;
}

Result<FrameHeader> parse_frame_header(std::span<const std::byte, kFrameHeaderSize> bytes,
                                       const FrameLimits& limits) {
  if (!std::equal(kStreamMagic.begin(), kStreamMagic.end(), bytes.begin()))
    return invalid("the bytes received are not a Fedge frame: they do not begin with FDG1");
  const auto number = take<std::uint16_t>(bytes.subspan(4, 2));
  const auto flags = take<std::uint16_t>(bytes.subspan(6, 2));
  const FrameHeader header{static_cast<MessageType>(number), take<std::uint32_t>(bytes.subspan(8, 4)),
                           take<std::uint32_t>(bytes.subspan(12, 4))};
  const FrameType* known = find_frame_type(header.type);
  if (known == nullptr)
    return Error{ErrorCode::kUnsupported,
                 "message type " + std::to_string(number) + " is not known to this version"};
  if (flags != 0)
    return Error{ErrorCode::kUnsupported,
                 "frame flags " + std::to_string(flags) + " are not known to this version"};
  if (limits.greetings_only && !known->greeting)
    return Error{ErrorCode::kRefused, std::string(known->name) + " came before the peer was authorised"};
  if (header.type != MessageType::kChunk && header.payload_size != 0)
    return invalid(std::string(known->name) + " declares a payload of " +
                   std::to_string(header.payload_size) + " bytes; only a chunk may have a payload");
  if (header.header_size > limits.max_header)
    return too_long("header", header.header_size, limits.max_header);
  if (header.payload_size > limits.max_payload)
    return too_long("payload", header.payload_size, limits.max_payload);
  return header;
}

}  // namespace fedge::protocol
