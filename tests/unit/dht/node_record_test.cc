#include "dht/node_record.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "core/rng.h"

namespace fedge::dht {
namespace {

const NodeRecord kExample{.round = 0x01020304,
                          .sequence = 0x1112131415161718,
                          .latency_ms = 2.5,
                          .packet_loss = 0.25,
                          .labels = {0, 3, -1.5}};

// Worked out by hand from the layout in the header.
const std::string kExampleHex =
    "01"
    "04030201"
    "1817161514131211"
    "0000000000000440"
    "000000000000d03f"
    "0300"
    "00000000"
    "00004040"
    "0000c0bf";

std::string hex(const std::vector<std::byte>& bytes) {
  std::vector<std::uint8_t> plain;
  for (const std::byte byte : bytes) plain.push_back(std::to_integer<std::uint8_t>(byte));
  return to_hex(plain);
}

std::vector<std::byte> example_bytes() {
  auto bytes = encode_node_record(kExample);
  REQUIRE(bytes);
  return *bytes;
}

// The layout, whatever the values.
std::vector<std::byte> unchecked_bytes(const NodeRecord& record) {
  std::vector<std::byte> bytes;
  const auto append = [&](std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i & 0xff));
  };
  append(1, 1);
  append(record.round, 4);
  append(record.sequence, 8);
  append(std::bit_cast<std::uint64_t>(record.latency_ms), 8);
  append(std::bit_cast<std::uint64_t>(record.packet_loss), 8);
  append(record.labels.size(), 2);
  for (const double label : record.labels) append(std::bit_cast<std::uint32_t>(static_cast<float>(label)), 4);
  return bytes;
}

// An error that names the field, from both sides.
void check_refused(const NodeRecord& record, const std::string& field) {
  CAPTURE(field);
  const auto encoded = encode_node_record(record);
  REQUIRE_FALSE(encoded);
  CHECK(encoded.error().code == ErrorCode::kInvalid);
  CHECK(encoded.error().message.find(field) != std::string::npos);
  const auto decoded = decode_node_record(unchecked_bytes(record));
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().code == ErrorCode::kInvalid);
  CHECK(decoded.error().message.find(field) != std::string::npos);
}

}  // namespace

TEST_CASE("node record: its bytes are those of the layout") {
  CHECK(hex(example_bytes()) == kExampleHex);
  CHECK(hex(unchecked_bytes(kExample)) == kExampleHex);
  const auto decoded = decode_node_record(example_bytes());
  REQUIRE(decoded);
  CHECK(*decoded == kExample);
}

TEST_CASE("node record: any valid record comes back as it was") {
  Rng rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    NodeRecord record{.round = rng.next_u32(),
                      .sequence = rng.next_u64(),
                      .latency_ms = 1000 * rng.uniform(),
                      .packet_loss = rng.uniform()};
    for (std::uint64_t i = rng.below(50); i > 0; --i)
      record.labels.push_back(double{static_cast<float>(100 * rng.normal())});
    const auto bytes = encode_node_record(record);
    REQUIRE(bytes);
    const auto decoded = decode_node_record(*bytes);
    REQUIRE(decoded);
    CHECK(*decoded == record);
  }
  const auto most = encode_node_record({.labels = std::vector<double>(kMaxLabels, 1.0)});
  REQUIRE(most);
  CHECK(most->size() <= protocol::kMaxRecordBytes);
}

TEST_CASE("node record: what no record may hold is refused, with the field") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double latency : {kNan, kInfinity, -1.0}) check_refused({.latency_ms = latency}, "latency");
  for (const double loss : {kNan, -0.01, 1.01}) check_refused({.packet_loss = loss}, "packet loss");
  for (const double label : {kNan, kInfinity, -kInfinity}) check_refused({.labels = {1, label}}, "label 1");
  CHECK_FALSE(encode_node_record({.labels = {1e300}}));  // single precision has no such number
  check_refused({.labels = std::vector<double>(kMaxLabels + 1)}, "1001 labels");
}

TEST_CASE("node record: every truncation, every longer record and every other version is refused") {
  const auto bytes = example_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decode_node_record(std::span(bytes).first(size));
    REQUIRE_FALSE(cut);
    CHECK(cut.error().message.find("node record") != std::string::npos);
  }
  auto longer = bytes;
  longer.push_back(std::byte(0));
  CHECK_FALSE(decode_node_record(longer));
  for (unsigned version = 0; version < 256; ++version) {
    auto other = bytes;
    other[0] = static_cast<std::byte>(version);
    const auto decoded = decode_node_record(other);
    CHECK(decoded.has_value() == (version == 1));
    if (!decoded) CHECK(decoded.error().code == ErrorCode::kUnsupported);
  }
}

TEST_CASE("node record: hostile bytes are refused or are a valid record's own bytes") {
  Rng rng(2);
  int valid = 0;
  for (int trial = 0; trial < 50'000; ++trial) {
    auto bytes = example_bytes();
    if (trial % 2 == 0) {
      bytes.resize(rng.below(200));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
      if (!bytes.empty() && trial % 4 == 0) bytes[0] = std::byte(1);
    } else {
      for (std::uint64_t flips = 1 + rng.below(4); flips > 0; --flips)
        bytes[rng.below(bytes.size())] ^= static_cast<std::byte>(1U << rng.below(8));
    }
    const auto decoded = decode_node_record(bytes);
    if (!decoded) continue;
    ++valid;
    REQUIRE((std::isfinite(decoded->latency_ms) && decoded->latency_ms >= 0));
    REQUIRE((decoded->packet_loss >= 0 && decoded->packet_loss <= 1));
    for (const double label : decoded->labels) REQUIRE(std::isfinite(label));
    const auto again = encode_node_record(*decoded);
    REQUIRE(again);
    REQUIRE(*again == bytes);
  }
  CHECK(valid > 1000);  // a record with a bit of its round flipped, for instance, is as valid as before
}

TEST_CASE("node record: a client's key is the SHA-256 of its number in four little-endian bytes") {
  // printf '\x00\x00\x00\x00' | sha256sum; printf '\x02\x01\x00\x00' | sha256sum
  CHECK(to_hex(node_key(ClientId(0))) == "df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119");
  CHECK(to_hex(node_key(ClientId(0x0102))) ==
        "7255b3ce83a75f4d6f13513f56db57229ed61a0775438923799f7050c505ecda");
}

}  // namespace fedge::dht
