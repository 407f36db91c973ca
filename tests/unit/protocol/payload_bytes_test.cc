// Payload codecs against bytes worked out by hand from docs/PROTOCOL.md, in both directions.
#include <doctest/doctest.h>
#include <zstd.h>

#include <limits>

#include "tests/support/payloads.h"

namespace fedge::protocol {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

// Encodes the values, compares the bytes, decodes them and compares the result with what the encoder
// announced.
void check_bytes(const Compression& compression, const std::vector<float>& values,
                 const std::vector<std::byte>& bytes, const std::vector<float>& received) {
  std::vector<float> seen(values.size());
  const EncodedPayload payload = encode_payload(compression, values, seen, Rng(1));
  CHECK(payload.bytes == bytes);
  CHECK(payload.codec == compression.codec);
  CHECK(same_bits(seen, received));
  EncodedPayload by_hand = payload;
  by_hand.bytes = bytes;
  const auto values_back = decoded(by_hand, values.size());
  REQUIRE(values_back);
  CHECK(same_bits(*values_back, received));
}

// Returns zeros with these values at these positions.
std::vector<float> sparse_values(std::size_t size, std::vector<std::pair<std::size_t, float>> values) {
  std::vector<float> result(size);
  for (const auto& [position, value] : values) result[position] = value;
  return result;
}

}  // namespace

TEST_CASE("float32 payload: the values as they are") {
  check_bytes({}, {1.0F, -2.5F}, bytes_of({0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0}), {1.0F, -2.5F});
}

TEST_CASE("float16 payload: nearest even, small numbers kept, large ones held at 65504") {
  check_bytes({.codec = Codec::kFloat16},
              {1.0F, -2.0F, 0x1.002p0F, 0x1.006p0F, 70'000.0F, -kLargest, 0x1p-24F, 0x1p-25F, -0.0F},
              bytes_of({0x00, 0x3c, 0x00, 0xc0, 0x00, 0x3c, 0x02, 0x3c, 0xff, 0x7b, 0xff, 0xfb, 0x01, 0x00,
                        0x00, 0x00, 0x00, 0x80}),
              {1.0F, -2.0F, 1.0F, 0x1.008p0F, 65'504.0F, -65'504.0F, 0x1p-24F, 0.0F, -0.0F});
}

TEST_CASE("bfloat16 payload: nearest even, and the largest float32 does not become infinite") {
  check_bytes({.codec = Codec::kBfloat16}, {1.0F, 0x1.01p0F, 0x1.03p0F, kLargest, -1e-40F},
              bytes_of({0x80, 0x3f, 0x80, 0x3f, 0x82, 0x3f, 0x7f, 0x7f, 0x01, 0x80}),
              {1.0F, 1.0F, 0x1.04p0F, 0x1.fep127F, -0x1p-133F});
}

TEST_CASE("int8 payload: a scale of the largest magnitude / 127, and a signed byte for each value") {
  check_bytes({.codec = Codec::kInt8}, {-127.0F, 64.0F, 0.0F, 127.0F},
              bytes_of({0, 0, 0x80, 0x3f, 0x81, 0x40, 0x00, 0x7f}), {-127.0F, 64.0F, 0.0F, 127.0F});
}

TEST_CASE("int8 payload: every 256 values a scale, 0 for a block of zeros") {
  std::vector<float> values(257);
  values[256] = 254.0F;
  std::vector<std::byte> bytes(4 + 256 + 4);
  bytes[263] = std::byte{0x40};  // 2.0
  bytes.push_back(std::byte{0x7f});
  check_bytes({.codec = Codec::kInt8}, values, bytes, values);
}

TEST_CASE("QSGD payload: the norm, and the levels 0, -1, 1, -2 ... as 0, 1, 2, 3 ... in few bits") {
  // Norm 5: 3 and -4 are 9 and -12 fifteenths, with the five-bit codes 18 and 23.
  check_bytes({.codec = Codec::kQsgd, .levels = 15}, {3.0F, -4.0F}, bytes_of({0, 0, 0xa0, 0x40, 0xf2, 0x02}),
              {3.0F, -4.0F});
  // s = 1 takes two bits: the codes 0, 1 (level -1), 0, 0, 0.
  check_bytes({.codec = Codec::kQsgd, .levels = 1}, {0, -8.0F, 0, 0, 0},
              bytes_of({0, 0, 0, 0x41, 0x04, 0x00}), {0, -8.0F, 0, 0, 0});
  // s = 127 takes a byte: level 127 has the code 254.
  check_bytes({.codec = Codec::kQsgd, .levels = 127}, {0.0F, 0.5F}, bytes_of({0, 0, 0, 0x3f, 0x00, 0xfe}),
              {0.0F, 0.5F});
}

TEST_CASE("QSGD payload: every 512 values a norm, 0 for a bucket of zeros") {
  std::vector<float> values(513);
  values[512] = -2.0F;
  std::vector<std::byte> bytes(4 + 512 * 3 / 8 + 4);
  bytes[4 + 192 + 3] = std::byte{0x40};  // 2.0
  bytes.push_back(std::byte{0x05});      // level -3 of 3, in three bits
  check_bytes({.codec = Codec::kQsgd, .levels = 3}, values, bytes, values);
}

TEST_CASE("sparse payload: the count, gaps as varints, values") {
  // Gaps 3, and 203 - 4 = 199 = 0xc7 0x01.
  const auto values = sparse_values(300, {{3, 1.0F}, {203, -2.0F}});
  check_bytes({.codec = Codec::kSparse, .fraction = 2.0 / 300}, values,
              bytes_of({2, 0, 0, 0, 3, 0xc7, 0x01, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}), values);
}

TEST_CASE("sparse payload: a bitmap where more than 1 in 32 is kept") {
  const auto ten = sparse_values(10, {{1, 1.0F}, {9, -2.0F}});
  check_bytes({.codec = Codec::kSparse, .fraction = 0.2}, ten,
              bytes_of({2, 0, 0, 0, 0x02, 0x02, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}), ten);
  // Two of 63 are more than 1 in 32, two of 64 are not.
  const auto one = sparse_values(63, {{1, 1.0F}, {9, 1.0F}});
  std::vector<float> seen(64);
  CHECK(encode_payload({.codec = Codec::kSparse, .fraction = 0.03}, one, std::span(seen).first(63), Rng(1))
            .bytes.size() == 4 + 8 + 8);
  const auto other = sparse_values(64, {{1, 1.0F}, {9, 1.0F}});
  CHECK(encode_payload({.codec = Codec::kSparse, .fraction = 0.03}, other, seen, Rng(1)).bytes.size() ==
        4 + 2 + 8);
}

TEST_CASE("sparse payload: every 65,536 values a count, and what is 0 is not sent") {
  const auto values = sparse_values(65'537, {{65'535, 4.0F}});
  check_bytes({.codec = Codec::kSparse, .fraction = 0.001}, values,
              bytes_of({1, 0, 0, 0, 0xff, 0xff, 0x03, 0, 0, 0x80, 0x40, 0, 0, 0, 0}), values);
}

TEST_CASE("sparse payload: of equal magnitudes the first are kept") {
  check_bytes({.codec = Codec::kSparse, .fraction = 0.5}, {1.0F, 2.0F, -2.0F, -1.0F, 1.0F, 1.0F},
              bytes_of({3, 0, 0, 0, 0x07, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0, 0xc0}),
              {1.0F, 2.0F, -2.0F, 0, 0, 0});
}

TEST_CASE("sparse payload: random values are scaled by d/k, up to the largest number") {
  const std::vector<float> values = {2.0F, 2.0F, kLargest, kLargest};
  std::vector<float> seen(4);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    encode_payload({.codec = Codec::kSparse, .fraction = 0.5, .random = true}, values, seen, Rng(seed));
    CHECK(std::count(seen.begin(), seen.end(), 0.0F) == 2);
    CHECK(std::count(seen.begin(), seen.end(), 4.0F) + std::count(seen.begin(), seen.end(), kLargest) == 2);
  }
}

TEST_CASE("zstd payload: a frame made by the zstd program is taken") {
  // printf '\x00\x3c\x00\xc0' | zstd --no-check --zstd=wlog=17 | xxd -i
  const EncodedPayload payload{
      .bytes = bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38, 0x21, 0x00, 0x00, 0x00, 0x3c, 0x00, 0xc0}),
      .codec = Codec::kFloat16,
      .raw_size = 4};
  const auto values = decoded(payload, 2);
  REQUIRE(values);
  CHECK(*values == std::vector<float>{1.0F, -2.0F});
}

TEST_CASE("zstd payload: the library's own decoder gives the bytes there would be without zstd") {
  std::vector<float> values(100'000);
  Rng rng(7);
  for (float& value : values) value = static_cast<float>(rng.normal());
  for (const Codec codec :
       {Codec::kFloat32, Codec::kFloat16, Codec::kBfloat16, Codec::kInt8, Codec::kQsgd, Codec::kSparse}) {
    CAPTURE(static_cast<int>(codec));
    std::vector<float> seen(values.size());
    const EncodedPayload plain = encode_payload({.codec = codec}, values, seen, Rng(3));
    CHECK(plain.raw_size == 0);
    const EncodedPayload packed = encode_payload({.codec = codec, .zstd = true}, values, seen, Rng(3));
    CHECK(packed.raw_size == plain.bytes.size());
    std::vector<std::byte> raw(plain.bytes.size());
    REQUIRE(ZSTD_decompress(raw.data(), raw.size(), packed.bytes.data(), packed.bytes.size()) == raw.size());
    CHECK(raw == plain.bytes);
  }
}

TEST_CASE("payload: a chunk that cannot be read ends the decoding with its error") {
  class Failing final : public ChunkSource {
    Result<void> read_part(std::size_t chunk, std::size_t, std::span<std::byte> out) override {
      std::fill(out.begin(), out.end(), std::byte{});
      if (chunk == 0) return {};
      return Error{ErrorCode::kNotFound, "gone"};
    }
  } failing;
  std::vector<float> values(4000, 1.0F);
  const Manifest manifest =
      manifest_of(encode_payload({.codec = Codec::kFloat16}, values, values, Rng(1)), 4000);
  auto decoder = PayloadDecoder::open(manifest, failing);
  REQUIRE(decoder);
  const auto result = decoder->read(values);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kNotFound);
  CHECK(result.error().message == "from value 0 on: gone");
}

TEST_CASE("payload: values that were not read are an error at the end") {
  std::vector<float> values(10, 1.0F);
  const EncodedPayload payload = encode_payload({.codec = Codec::kInt8}, values, values, Rng(1));
  const Manifest manifest = manifest_of(payload, 10);
  MemoryChunks chunks(payload.bytes, manifest.chunk_size);
  auto decoder = PayloadDecoder::open(manifest, chunks);
  REQUIRE(decoder);
  REQUIRE(decoder->read(std::span(values).first(4)));
  CHECK(decoder->remaining() == 6);
  CHECK(decoder->finish().error().code == ErrorCode::kCorrupt);
}

TEST_CASE("compression: levels and fractions out of range are refused") {
  CHECK(validate(Compression{.codec = Codec::kQsgd, .levels = 127}));
  CHECK_FALSE(validate(Compression{.codec = Codec::kQsgd, .levels = 0}));
  CHECK_FALSE(validate(Compression{.codec = Codec::kQsgd, .levels = 128}));
  CHECK(validate(Compression{.codec = Codec::kSparse, .fraction = 1.0}));
  for (const double fraction : {0.0, -0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    CHECK_FALSE(validate(Compression{.codec = Codec::kSparse, .fraction = fraction}));
  CHECK_FALSE(validate(Compression{.codec = static_cast<Codec>(8)}));
  CHECK_FALSE(validate(Compression{.codec = Codec::kMasked32}));
  CHECK_FALSE(validate(Compression{.codec = Codec::kMasked64}));
}

}  // namespace fedge::protocol
