#include "protocol/frame.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "protocol/codec.h"
#include "protocol/session/frame_writer.h"

using namespace fedge;
using namespace fedge::protocol;

namespace {

FrameHeaderBytes header_bytes(const std::string& text) {
  FrameHeaderBytes bytes{};
  for (std::size_t i = 0; i < bytes.size() && i < text.size(); ++i)
    bytes[i] = static_cast<std::byte>(text[i]);
  return bytes;
}

constexpr const char* kPingFrame = "FDG1\x04\0\0\0\0\0\0\0\0\0\0\0";

FrameHeaderBytes ping() { return header_bytes(std::string(kPingFrame, 16)); }

}  // namespace

TEST_CASE("frame: the sixteen bytes are magic, type, flags and two lengths, little-endian") {
  const FrameHeader header{MessageType::kChunk, 0x24, 0x00040201};
  const auto bytes = encode_frame_header(header);
  CHECK(bytes == header_bytes(std::string("FDG1\x11\0\0\0\x24\0\0\0\x01\x02\x04\0", 16)));
  const auto parsed = parse_frame_header(bytes, {});
  REQUIRE(parsed);
  CHECK(*parsed == header);
}

TEST_CASE("frame: every type has a name and comes back, every other number is unsupported") {
  int known = 0;
  for (unsigned number = 0; number <= 0xffff; ++number) {
    auto bytes = ping();
    bytes[4] = static_cast<std::byte>(number & 0xff);
    bytes[5] = static_cast<std::byte>(number >> 8);
    const auto parsed = parse_frame_header(bytes, {});
    if (parsed) {
      ++known;
      CHECK(static_cast<unsigned>(parsed->type) == number);
      CHECK(std::string(name_of(parsed->type)) != "unknown");
    } else if (parsed.error().code != ErrorCode::kUnsupported) {
      FAIL("type " << number << ": " << parsed.error().message);
    }
  }
  CHECK(known == 47);
}

TEST_CASE("A1 row 21: frame: other protocols' first bytes are refused as no frame of ours") {
  for (const char* text :
       {"GET / HTTP/1.1\r\n", "SSH-2.0-OpenSSH_", "\x16\x03\x01\x02\x00\x01", "FDG2\x04", ""}) {
    const auto parsed = parse_frame_header(header_bytes(text), {});
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == ErrorCode::kInvalid);
    CHECK(parsed.error().message.find("FDG1") != std::string::npos);
  }
}

TEST_CASE("A6 row 20: frame: a length above its limit is refused, whatever it is") {
  for (const std::uint32_t size : {std::uint32_t{kMaxHeader + 1}, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    const auto long_header = parse_frame_header(encode_frame_header({MessageType::kPing, size, 0}), {});
    REQUIRE_FALSE(long_header);
    CHECK(long_header.error().code == ErrorCode::kResource);
    const std::uint32_t payload = std::max<std::uint32_t>(size, kMaxChunkSize + 1);
    const auto long_payload = parse_frame_header(encode_frame_header({MessageType::kChunk, 40, payload}), {});
    REQUIRE_FALSE(long_payload);
    CHECK(long_payload.error().code == ErrorCode::kResource);
  }
  CHECK(parse_frame_header(encode_frame_header({kTypeOf<UpdateOffer>, kMaxHeader, 0}), {}));
  CHECK(parse_frame_header(encode_frame_header({MessageType::kChunk, 40, kMaxChunkSize}), {}));
}

TEST_CASE("frame: only a chunk carries a payload") {
  const auto parsed = parse_frame_header(encode_frame_header({kTypeOf<Welcome>, 4, 1}), {});
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == ErrorCode::kInvalid);
}

TEST_CASE("frame: a flag of a later version is unsupported, not ignored") {
  auto bytes = ping();
  bytes[6] = std::byte{1};
  const auto parsed = parse_frame_header(bytes, {});
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("frame: before authorisation only small greetings pass") {
  for (unsigned number = 1; number <= 255; ++number) {
    const auto type = static_cast<MessageType>(number);
    if (std::string(name_of(type)) == "unknown") continue;
    const auto small = parse_frame_header(encode_frame_header({type, 100, 0}), kUnauthorisedLimits);
    CHECK(small.has_value() == (number <= 3));
    if (!small) CHECK(small.error().code == ErrorCode::kRefused);
  }
  const auto large = parse_frame_header(encode_frame_header({kTypeOf<Hello>, kMaxHeaderUnauthorised + 1, 0}),
                                        kUnauthorisedLimits);
  REQUIRE_FALSE(large);
  CHECK(large.error().code == ErrorCode::kResource);
}

TEST_CASE("A6: a chunk is read in pieces, and after a wait no more of it than the piece in hand") {
  struct Source final : ChunkSource {
    Result<void> read_part(std::size_t, std::size_t from, std::span<std::byte> out) override {
      read += out.size();
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>((from + i) % 251);
      return {};
    }
    std::size_t read = 0;
  };
  constexpr std::size_t kLength = 1'000'003;
  const auto source = std::make_shared<Source>();
  ChunkSender::Due due;
  due.length = kLength;
  due.source = source;
  FrameWriter writer;
  const auto size = writer.begin_chunk(due);
  REQUIRE(size);
  std::string frame;
  for (std::size_t waits = 0; !writer.between_frames(); ++waits) {
    const std::size_t before = source->read;
    const auto bytes = writer.next();
    REQUIRE(bytes);
    REQUIRE(!bytes->empty());
    CHECK(source->read - before <= 64 << 10);
    const std::size_t taken = std::min<std::size_t>(bytes->size(), 1 + 7919 * (waits % 5));
    frame.append(reinterpret_cast<const char*>(bytes->data()), taken);
    writer.wrote(taken);
    if (waits % 3 == 0) writer.set_aside();
  }
  REQUIRE(frame.size() == *size);
  CHECK(source->read > kLength);
  const std::string head = encode_frame(due.chunk, kLength);
  CHECK(frame.starts_with(head));
  for (std::size_t i = 0; i < kLength; ++i)
    REQUIRE(static_cast<unsigned char>(frame[head.size() + i]) == i % 251);
}
