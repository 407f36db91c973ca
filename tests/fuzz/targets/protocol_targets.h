// Fuzz targets of the protocol. The unit tests run the same functions over the checked-in corpus, so that an
// input that once broke a decoder is tested everywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/coverage.h"
#include "core/crypto/sha256.h"
#include "core/text.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/codec.h"
#include "protocol/join_token.h"
#include "protocol/session/frame_reader.h"

namespace fedge::fuzz {

// A decoded message must be encodable, and decodable again.
inline void check_round_trip(const protocol::Message& message) {
  const std::string bytes = protocol::encode(message);
  const auto again = protocol::decode(protocol::type_of(message), std::as_bytes(std::span(bytes)));
  FEDGE_CHECK(again.has_value(), again ? "" : again.error().message);
  FEDGE_CHECK(protocol::encode(*again) == bytes, "a message changes when it is encoded twice");
}

inline void take_frame(const protocol::FrameReader& reader) {
  using protocol::MessageType;
  switch (reader.frame().type) {
    case MessageType::kChunk:
      (void)protocol::decode_chunk(reader.header());
      break;
    case MessageType::kChunkRequest:
      (void)protocol::decode_chunk_request(reader.header());
      break;
    case MessageType::kChunkRefused:
      (void)protocol::decode_chunk_refused(reader.header());
      break;
    default:
      if (const auto message = protocol::decode(reader.frame().type, reader.header()))
        check_round_trip(*message);
  }
}

// The bytes of a connection; byte 0 is the number of bytes that arrive at once, minus one.
inline void feed_frames(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::size_t at_once = static_cast<std::size_t>(bytes[0]) + 1;
  bytes = bytes.subspan(1);
  protocol::FrameReader reader;
  while (!bytes.empty()) {
    const auto space = reader.space();
    const std::size_t size = std::min({space.size(), bytes.size(), at_once});
    std::memcpy(space.data(), bytes.data(), size);
    bytes = bytes.subspan(size);
    const auto event = reader.filled(size, {});
    if (!event) return;
    if (*event == protocol::FrameReader::Event::kPayload) {
      if (reader.frame().payload_size == 0) return;
      reader.expect_payload();
    }
    if (*event == protocol::FrameReader::Event::kFrame) {
      take_frame(reader);
      reader.next();
    }
  }
}

// One value; byte 0 selects its kind.
inline void feed_values(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto kind = static_cast<unsigned>(bytes[0]) % 6;
  bytes = bytes.subspan(1);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::span octets(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (kind == 0) {
    const auto coverage = Coverage::decode(octets, protocol::kMaxParameters, protocol::kMaxCoverageRanges);
    if (!coverage) return;
    const auto encoded = coverage->encode();
    FEDGE_CHECK(std::equal(encoded.begin(), encoded.end(), octets.begin(), octets.end()),
                "a coverage has two encodings");
  }
  if (kind == 1) {
    const auto message = protocol::decode(protocol::kTypeOf<protocol::UpdateOffer>, bytes);
    if (message) check_round_trip(*message);
  }
  if (kind == 2) {
    const auto token = protocol::parse_join_token(text);
    if (token) FEDGE_CHECK(protocol::encode_join_token(*token) == text, "a join token has two texts");
  }
  if (kind == 3) {
    const auto address = protocol::parse_address(text);
    if (address)
      FEDGE_CHECK(protocol::parse_address(protocol::to_string(*address)), "an address has no text");
  }
  if (kind == 4) {
    (void)check_text(text, 1000, "text", LineEnds::kAllowed);
    FEDGE_CHECK(check_text(clean_text(text, 1000), 1000, "text"), "cleaned text is not clean");
  }
  if (kind == 5) {
    (void)protocol::decode_chunk_request(bytes);
    (void)protocol::decode_chunk_refused(bytes);
  }
}

// The bytes of a Manifest of docs/PROTOCOL.md within the smallest UpdateOffer that can hold it.
inline void feed_manifest(std::span<const std::byte> bytes) {
  std::string offer = "\x20\x01\x1a";  // one sample; field 3, length-delimited
  for (std::size_t length = bytes.size(); true; length >>= 7) {
    offer += static_cast<char>((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
    if (length <= 0x7f) break;
  }
  offer.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto message =
      protocol::decode(protocol::kTypeOf<protocol::UpdateOffer>, std::as_bytes(std::span(offer)));
  if (!message) {
    FEDGE_CHECK(!message.error().message.empty(), "an error says what is wrong");
    return;
  }
  check_round_trip(*message);
  const protocol::Manifest* manifest = &std::get<protocol::UpdateOffer>(*message).update;
  const auto valid = protocol::validate(*manifest);
  FEDGE_CHECK(valid.has_value(), valid ? "" : valid.error().message);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < manifest->chunk_count(); ++i) {
    const std::size_t length = manifest->chunk_length(i);
    FEDGE_CHECK(length > 0 && length <= manifest->chunk_size, "a chunk of no possible length");
    total += length;
  }
  FEDGE_CHECK(total == manifest->payload_size, "the chunks are not the payload");
  protocol::Manifest other = *manifest;
  other.chunks.front().front() ^= 1;
  FEDGE_CHECK(other.id() != manifest->id(), "two manifests have one name");
  const std::vector<std::byte> zeros(std::min<std::size_t>(manifest->chunk_length(0), 64 << 10));
  const bool right = zeros.size() == manifest->chunk_length(0) && sha256(zeros) == manifest->chunks.front();
  FEDGE_CHECK(protocol::verify_chunk(*manifest, 0, zeros).has_value() == right,
              "other bytes are taken for a chunk, or the right ones are not");
}

inline std::string to_base64url(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string bits;
  for (const char byte : bytes)
    for (int bit = 7; bit >= 0; --bit) bits += (static_cast<unsigned char>(byte) >> bit & 1) != 0 ? '1' : '0';
  bits.resize((bits.size() + 5) / 6 * 6, '0');
  std::string text;
  for (std::size_t i = 0; i < bits.size(); i += 6) text += kDigits[std::stoul(bits.substr(i, 6), nullptr, 2)];
  return text;
}

// Odd first byte: the text of a token. Even first byte: the content of a token, to which a valid checksum is
// added.
inline void feed_token(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const bool as_text = (static_cast<unsigned>(bytes[0]) & 1U) != 0;
  std::string text(reinterpret_cast<const char*>(bytes.data()) + 1, bytes.size() - 1);
  if (!as_text) {
    const Digest digest = sha256("fedge1." + text);
    text.append(reinterpret_cast<const char*>(digest.data()), 4);
    text = "fedge1." + to_base64url(text);
  }
  const auto token = protocol::parse_join_token(text);
  if (!token) {
    FEDGE_CHECK(!token.error().message.empty() && token.error().message.size() < 500, "an error is short");
    static std::set<std::string> messages;
    messages.insert(token.error().message);
    FEDGE_CHECK(messages.size() < 10, "an error repeats what is in the token");
    return;
  }
  FEDGE_CHECK(protocol::encode_join_token(*token) == text, "a join token has two texts");
  FEDGE_CHECK(token->addresses.size() <= protocol::kMaxCoordinatorAddresses &&
                  token->secret.size() >= protocol::kMinTokenSecret &&
                  token->secret.size() <= protocol::kMaxTokenSecret,
              "a token beyond its bounds");
  for (const protocol::Address& address : token->addresses)
    FEDGE_CHECK(protocol::parse_address(protocol::to_string(address)), "an address has no text");
}

}  // namespace fedge::fuzz
