#include "dht/node_record.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/crypto/sha256.h"
#include "core/rng.h"

namespace fedge::dht {
namespace {

const NodeRecord kExample{.round = 300,
                          .sequence = 0x1112131415161718,
                          .latency_ms = 2.5,
                          .freshness = 8.0,
                          .availability = 0.25,
                          .labels = {0, 3, -1.5}};

// Worked out by hand from directory.proto and the encoding of protocol buffers: tag, then value.
const std::string kExampleHex =
    "0801"                          // version, field 1
    "10ac02"                        // round, field 2: 300 = 0b10'0101100
    "191817161514131211"            // sequence, field 3
    "210000000000000440"            // latency, field 4
    "310000000000002040"            // freshness, field 6
    "41000000000000d03f"            // availability, field 8
    "4a0c00000000000040400000c0bf"  // labels, field 9, 12 bytes
    ;

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

void check_refused(const NodeRecord& record, const std::string& field) {
  CAPTURE(field);
  const auto encoded = encode_node_record(record);
  REQUIRE_FALSE(encoded);
  CHECK(encoded.error().code == ErrorCode::kInvalid);
  CHECK(encoded.error().message.find(field) != std::string::npos);
}

// Appends a double with this field tag to a valid record's bytes, and decodes them.
Result<NodeRecord> with_double(std::uint8_t tag, double value) {
  auto bytes = example_bytes();
  bytes.push_back(std::byte{tag});
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  return decode_node_record(bytes);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("node record: its bytes are those of the format") {
  CHECK(hex(example_bytes()) == kExampleHex);
  const auto decoded = decode_node_record(example_bytes());
  REQUIRE(decoded);
  CHECK(*decoded == kExample);
}

TEST_CASE("node record: any valid record comes back as it was, and what is not said stays unsaid") {
  Rng rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    NodeRecord record{.round = rng.next_u32(), .sequence = rng.next_u64()};
    if (rng.below(2) == 0) record.latency_ms = 1000 * rng.uniform();
    if (rng.below(2) == 0) record.packet_loss = rng.uniform();
    if (rng.below(2) == 0) record.freshness = 1e4 * rng.uniform();
    if (rng.below(2) == 0) record.utility = 1e6 * rng.uniform();
    if (rng.below(2) == 0) record.availability = rng.uniform();
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
  for (const double wrong : {kNan, kInfinity, -1.0}) {
    check_refused({.latency_ms = wrong}, "latency");
    check_refused({.freshness = wrong}, "freshness");
    check_refused({.utility = wrong}, "utility");
    CHECK_FALSE(with_double(0x21, wrong));
    CHECK_FALSE(with_double(0x31, wrong));
    CHECK_FALSE(with_double(0x39, wrong));
  }
  for (const double wrong : {kNan, -0.01, 1.01}) {
    check_refused({.packet_loss = wrong}, "packet loss");
    check_refused({.availability = wrong}, "availability");
    CHECK_FALSE(with_double(0x29, wrong));
    CHECK_FALSE(with_double(0x41, wrong));
  }
  CHECK(with_double(0x41, 0.75)->availability == 0.75);
  for (const double label : {kNan, kInfinity, -kInfinity}) check_refused({.labels = {1, label}}, "label 1");
  CHECK_FALSE(encode_node_record({.labels = {1e300}}));  // out of float's range
  check_refused({.labels = std::vector<double>(kMaxLabels + 1)}, "901 labels");
}

TEST_CASE("node record: other versions, what is too long and what is no record are refused") {
  CHECK(decode_node_record({}).error().message == "node record: it is empty");
  for (unsigned version = 0; version < 128; ++version) {
    auto other = example_bytes();
    other[1] = static_cast<std::byte>(version);
    const auto decoded = decode_node_record(other);
    CHECK(decoded.has_value() == (version == 1));
    if (!decoded) CHECK(decoded.error().code == ErrorCode::kUnsupported);
  }
  const auto bytes = example_bytes();
  for (std::size_t size = 0; size + 1 < bytes.size(); ++size)
    if (const auto cut = decode_node_record(std::span(bytes).first(size))) CHECK(cut->labels.empty());
  auto longer = bytes;  // with an unknown field
  longer.insert(longer.end(), {std::byte{0xfa}, std::byte{0x07}, std::byte{0xb0}, std::byte{0x20}});
  longer.resize(longer.size() + 4144);
  CHECK(decode_node_record(longer).error().message.find("at most 4096") != std::string::npos);
}

TEST_CASE("node record: hostile bytes are refused or are a valid record") {
  Rng rng(2);
  int valid = 0;
  for (int trial = 0; trial < 50'000; ++trial) {
    auto bytes = example_bytes();
    for (std::uint64_t flips = 1 + rng.below(4); flips > 0; --flips)
      bytes[rng.below(bytes.size())] ^= static_cast<std::byte>(1U << rng.below(8));
    const auto decoded = decode_node_record(bytes);
    if (!decoded) continue;
    ++valid;
    for (const auto& amount : {decoded->latency_ms, decoded->freshness, decoded->utility})
      REQUIRE((!amount || (std::isfinite(*amount) && *amount >= 0)));
    for (const auto& share : {decoded->packet_loss, decoded->availability})
      REQUIRE((!share || (*share >= 0 && *share <= 1)));
    for (const double label : decoded->labels) REQUIRE(std::isfinite(label));
    REQUIRE(encode_node_record(*decoded));
  }
  CHECK(valid > 1000);  // for instance, a record with another round is still valid
}

}  // namespace fedge::dht
