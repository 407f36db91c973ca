// docs/PROTOCOL.md is a specification: its bytes and numbers must match the code.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "core/crypto/sha256.h"
#include "protocol/codec.h"
#include "protocol/codecs/payload_codec.h"
#include "protocol/codecs/raw_size.h"

using namespace fedge;
using namespace fedge::protocol;

namespace {

std::string document() {
  std::ifstream file(std::string(FEDGE_SOURCE_DIR) + "/docs/PROTOCOL.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the code block after this text, without line ends.
std::string block_after(const std::string& text, const std::string& marker) {
  const std::size_t from = text.find("```\n", text.find(marker)) + 4;
  std::string block = text.substr(from, text.find("```", from) - from);
  for (char& c : block)
    if (c == '\n') c = ' ';
  return block;
}

std::string spaced_hex(const std::string& bytes) {
  const auto octets = std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  std::string text;
  for (std::size_t i = 0; i < octets.size(); ++i) text += to_hex(octets.subspan(i, 1)) + " ";
  return text;
}

}  // namespace

TEST_CASE("document: the example frame is what the encoder makes") {
  const Hello hello{.software = "fedge-client 0.1.0", .token = "c0ffee"};
  CHECK(block_after(document(), "<!-- example: Hello") == spaced_hex(encode_frame(hello)));
}

TEST_CASE("document: the example payloads are what the encoder makes") {
  const auto encoded = [](const Compression& compression, std::vector<float> values) {
    const auto bytes = encode_payload(compression, values, values, Rng(1)).bytes;
    return spaced_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  const std::string text = document();
  CHECK(block_after(text, "int8, the values -127, 64, 0, 127") ==
        encoded({.codec = Codec::kInt8}, {-127.0F, 64.0F, 0.0F, 127.0F}));
  CHECK(block_after(text, "QSGD with *s* = 15, the values 3, -4") ==
        encoded({.codec = Codec::kQsgd, .levels = 15}, {3.0F, -4.0F}));
  std::vector<float> values(300);
  values[3] = 1.0F;
  values[203] = -2.0F;
  CHECK(block_after(text, "sparse, 300 values") ==
        encoded({.codec = Codec::kSparse, .fraction = 2.0 / 300}, values));
}

TEST_CASE(
    "document: the table of messages has every type with its number and sender, and says what may come "
    "first") {
  const std::vector<std::string> senders = {"connecting side", "accepting side", "either", "coordinator",
                                            "client"};
  std::istringstream lines(document());
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream row(line);
    std::string bar;
    std::string name;
    unsigned number = 0;
    if (!(row >> bar >> number >> bar >> name) || bar != "|" || name[0] < 'A' || name[0] > 'Z') continue;
    std::string snake;
    for (const char c : name) {
      if (c >= 'A' && c <= 'Z' && !snake.empty()) snake += '_';
      snake += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    const auto type = static_cast<MessageType>(number);
    CHECK(snake == std::string(name_of(type)));
    REQUIRE(find_frame_type(type) != nullptr);
    const auto sender = static_cast<std::size_t>(find_frame_type(type)->sender);
    CHECK_MESSAGE(line.find("| " + senders.at(sender) + " |") != std::string::npos, line);
    const bool early = parse_frame_header(encode_frame_header({type, 0, 0}), kUnauthorisedLimits).has_value();
    CHECK(early == (line.find("| yes |") != std::string::npos));
    ++rows;
  }
  CHECK(rows == 47);
}

TEST_CASE("document: the limits are those of the code") {
  const std::string text = document();
  const auto states = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  static_assert(kMaxHeaderUnauthorised == 4 << 10 && kMaxHeader == 2 << 20 && kFrameHeaderSize == 16);
  CHECK(states("4 KiB / 2 MiB"));
  static_assert(kMinChunkSize == 4 << 10 && kMaxChunkSize == 4 << 20 && kDefaultChunkSize == 256 << 10);
  CHECK(states("4 KiB to 4 MiB, a multiple of 4; 256 KiB"));
  static_assert(kMaxChunks == 30'000 && kFetchWindow == 2 << 20 && kMaxOutstandingChunks == 512);
  CHECK(states("at most 2 MiB, or are a\nsingle larger chunk, and are at most 512"));
  static_assert(kMaxCoverageRanges == 65'536 && kMaxCoverageBytes == 512 << 10);
  static_assert(kMaxParameters == 31'457'280'000);
  CHECK(states("65,536 ranges, 512 KiB encoded, up to parameter 31,457,280,000"));
  static_assert(kMaxText == 1 << 10 && kMaxSoftwareText == 256 && kMaxTaskText == 64 << 10);
  CHECK(states("1 KiB; software 256 bytes; a run's task 64 KiB"));
  static_assert(kMaxTokenizer == 32 << 20 && kMaxTokenizerPart == 256 << 10);
  CHECK(states("a run's tokenizer, and a part of it | 32 MiB and 256 KiB"));
  CHECK(states("TokenizerPart with the next 262,144"));
  static_assert(kMaxRunsInProgress == 256 && kMaxLiveTracks == 16'384);
  CHECK(states("runs in a Welcome | 256"));
  static_assert(kMaxQsgdLevels == 127 && kMaxZstdRatio == 32'768 && kZstdWindowLog == 17);
  CHECK(states("window of 128 KiB; at most 32,768 times"));
  CHECK(max_zstd_size(256'000) == 256'000 + 1000 + 64);
  CHECK(states("*r* + *r*/256 + 64"));
  static_assert(kInt8Block == 256 && kQsgdBucket == 512 && kSparseBlock == 65'536);
  CHECK(states("each block of 256 values"));
  CHECK(states("each bucket of 512 values"));
  CHECK(states("each block of *m* = 65,536 values"));
  static_assert(kPingInterval.count() == 20 && kIdleTimeout.count() == 60 && kCloseTimeout.count() == 5);
  CHECK(states("heard nothing for 20 s"));
  static_assert(kMaxQueuedControl == 4 << 20 && kMaxControlFramesPerTick == 10'000);
  static_assert(kMaxControlBytesPerTick == 64 << 20);
  CHECK(states("More than 4 MiB of control messages"));
  CHECK(states("more than 10,000 control frames, or 64 MiB of them"));
  static_assert(kSlowGrace.count() == 30 && kMinBytesPerSecond == 4 << 10);
  CHECK(states("coming in for 30 s must come at 4 KiB a second"));
  static_assert(kRefusedPause.count() == 1);
  CHECK(states("counts for one to two seconds more"));
}
