// What the protocol's fuzz targets feed. The same functions run over the checked-in corpus in the unit
// tests, so that an input that once broke a decoder keeps being tried by everyone.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "core/check.h"
#include "core/coverage.h"
#include "core/text.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/codec.h"
#include "protocol/join_token.h"
#include "protocol/session/frame_reader.h"

namespace fedge::fuzz {

// What decoded must be fit to be sent on, and must be understood again.
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

// The bytes as they would come over a connection; the first one says how many arrive at a time.
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

// One value; the first byte says of which kind.
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
    const auto message = protocol::decode(protocol::MessageType::kUpdateOffer, bytes);
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

}  // namespace fedge::fuzz
