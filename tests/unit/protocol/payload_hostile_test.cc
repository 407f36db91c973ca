// Payloads that no encoder writes, and manifests that declare impossible sizes, as a hostile peer may send
// them.
#include <doctest/doctest.h>
#include <zstd.h>

#include <limits>

#include "protocol/codecs/raw_size.h"
#include "protocol/limits.h"
#include "tests/support/payloads.h"
#include "tests/support/text.h"

namespace fedge::protocol {
namespace {

using fedge::test::contains;

EncodedPayload int8_payload(std::initializer_list<int> octets) {
  return {.bytes = bytes_of(octets), .codec = Codec::kInt8};
}
EncodedPayload qsgd_payload(std::initializer_list<int> octets, std::uint32_t levels) {
  return {.bytes = bytes_of(octets), .codec = Codec::kQsgd, .levels = levels};
}
EncodedPayload sparse_payload(std::initializer_list<int> octets) {
  return {.bytes = bytes_of(octets), .codec = Codec::kSparse};
}

// Compresses the bytes into a zstd frame with this window.
std::vector<std::byte> zstd_frame(const std::vector<std::byte>& bytes, int window_log) {
  std::vector<std::byte> frame(ZSTD_compressBound(bytes.size()));
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  ZSTD_outBuffer out{frame.data(), frame.size(), 0};
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_continue);
  REQUIRE(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end) == 0);
  ZSTD_freeCCtx(context);
  frame.resize(out.pos);
  return frame;
}

// A zstd payload that declares this many float16 zeros.
EncodedPayload zstd_payload(std::vector<std::byte> bytes, std::size_t values) {
  return {.bytes = std::move(bytes), .codec = Codec::kFloat16, .raw_size = 2 * values};
}

Manifest manifest(Codec codec, std::uint64_t payload_size, std::uint64_t raw_size = 0,
                  std::uint32_t levels = 0) {
  Manifest result{.coverage = Coverage::all(100'000),
                  .codec = codec,
                  .payload_size = payload_size,
                  .chunk_size = 1 << 20,
                  .raw_size = raw_size,
                  .levels = levels};
  result.chunks.resize((payload_size + result.chunk_size - 1) / result.chunk_size);
  return result;
}

}  // namespace

TEST_CASE("hostile payload: int8 scales that are no scales, and a level of -128") {
  CHECK(refusal(int8_payload({0, 0, 0x80, 0x3f, 1, 2}), 2) == "accepted");
  const char* scale = "it must be 0 or a normal positive number";
  CHECK(contains(refusal(int8_payload({0, 0, 0x80, 0xbf, 1, 2}), 2), scale));        // -1
  CHECK(contains(refusal(int8_payload({0, 0, 0x80, 0x7f, 1, 2}), 2), scale));        // infinity
  CHECK(contains(refusal(int8_payload({0, 0, 0xc0, 0x7f, 1, 2}), 2), scale));        // NaN
  CHECK(contains(refusal(int8_payload({0xff, 0xff, 0x7f, 0x00, 1, 2}), 2), scale));  // denormal
  CHECK(contains(refusal(int8_payload({0, 0, 0, 0x80, 0, 0}), 2), scale));           // -0
  CHECK(refusal(int8_payload({0, 0, 0, 0, 0, 0}), 2) == "accepted");
  CHECK(refusal(int8_payload({0, 0, 0, 0, 0, 1}), 2) ==
        "invalid: from value 0 on: the scale is 0, but a level is not");
  CHECK(refusal(int8_payload({0, 0, 0x80, 0x3f, 1, 0x80}), 2) ==
        "invalid: from value 0 on: a level is -128; levels must be from -127 to 127");
}

TEST_CASE("hostile payload: QSGD norms that are no norms, levels beyond s, padding") {
  CHECK(refusal(qsgd_payload({0, 0, 0x80, 0x3f, 0x09}, 1), 3) == "accepted");
  const char* norm = "it must be 0 or a normal positive number";
  CHECK(contains(refusal(qsgd_payload({0, 0, 0x80, 0xbf, 0x09}, 1), 3), norm));
  CHECK(contains(refusal(qsgd_payload({0, 0, 0x80, 0x7f, 0x09}, 1), 3), norm));
  CHECK(contains(refusal(qsgd_payload({1, 0, 0x80, 0x7f, 0x09}, 1), 3), norm));
  CHECK(contains(refusal(qsgd_payload({1, 0, 0, 0, 0x09}, 1), 3), norm));
  CHECK(contains(refusal(qsgd_payload({0, 0, 0, 0x80, 0x00}, 1), 3), norm));
  CHECK(contains(refusal(qsgd_payload({0, 0, 0, 0, 0x01}, 1), 3), "the norm is 0, but a level is not"));
  CHECK(contains(refusal(qsgd_payload({0, 0, 0x80, 0x3f, 0x03}, 1), 3), "a level is above 1 (code 3)"));
  CHECK(contains(refusal(qsgd_payload({0, 0, 0x80, 0x3f, 0xff}, 127), 1), "above 127 (code 255)"));
  CHECK(contains(refusal(qsgd_payload({0, 0, 0x80, 0x3f, 0x49}, 1), 3), "the padding is not 0"));
}

TEST_CASE("hostile payload: float16 and bfloat16 infinities and NaN are named by their value") {
  const EncodedPayload half{.bytes = bytes_of({0, 0, 0, 0x7c}), .codec = Codec::kFloat16};
  CHECK(refusal(half, 2) == "invalid: value 1 is not finite");
  const EncodedPayload nan{.bytes = bytes_of({0, 0, 1, 0xfc}), .codec = Codec::kFloat16};
  CHECK(refusal(nan, 2) == "invalid: value 1 is not finite");
  const EncodedPayload brain{.bytes = bytes_of({0x80, 0xff, 0, 0}), .codec = Codec::kBfloat16};
  CHECK(refusal(brain, 2) == "invalid: value 0 is not finite");
  // 127 times this scale overflows binary32.
  CHECK(refusal(int8_payload({0, 0, 0x7f, 0x7f, 0, 0x7f}), 2) == "invalid: value 1 is not finite");
}

TEST_CASE("hostile payload: float32 passes through, for its receiver to check") {
  const EncodedPayload payload{.bytes = bytes_of({0, 0, 0x80, 0x7f}), .codec = Codec::kFloat32};
  const auto values = decoded(payload, 1);
  REQUIRE(values);
  CHECK(values->front() == std::numeric_limits<float>::infinity());
}

TEST_CASE("hostile payload: sparse counts, positions and varints") {
  // 100 values, one kept at position 2: with three bytes of padding, the payload would be too long.
  CHECK(refusal(sparse_payload({1, 0, 0, 0, 2, 0, 0, 0x80, 0x3f}), 100) == "accepted");
  CHECK(refusal(sparse_payload({101, 0, 0, 0, 2, 0, 0, 0x80, 0x3f}), 100) ==
        "invalid: from value 0 on: a block of 100 values declares 101 kept values");
  CHECK(
      contains(refusal(sparse_payload({0xff, 0xff, 0xff, 0xff, 2}), 100), "declares 4294967295 kept values"));
  CHECK(contains(refusal(sparse_payload({1, 0, 0, 0, 100, 0, 0, 0x80, 0x3f}), 100),
                 "position 100 is beyond the end of a block of 100 values"));
  CHECK(contains(refusal(sparse_payload({2, 0, 0, 0, 99, 0, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f}), 100),
                 "position 100 is beyond"));
  CHECK(contains(refusal(sparse_payload({1, 0, 0, 0, 0x82, 0x00, 0, 0, 0x80, 0x3f}), 100),
                 "not minimally encoded"));
  CHECK(contains(refusal(sparse_payload({1, 0, 0, 0, 0x82, 0x80, 0x80, 0x01, 0, 0, 0x80, 0x3f}), 100),
                 "longer than three bytes"));
  CHECK(contains(refusal(sparse_payload({1, 0, 0, 0, 2, 0, 0, 0x80, 0x7f}), 100), "value 2 is not finite"));
}

TEST_CASE("hostile payload: sparse bitmaps that do not fit the count or the block") {
  CHECK(refusal(sparse_payload({1, 0, 0, 0, 0, 2, 0, 0, 0x80, 0x3f}), 10) == "accepted");
  CHECK(contains(refusal(sparse_payload({1, 0, 0, 0, 0, 4, 0, 0, 0x80, 0x3f}), 10),
                 "the bitmap's padding is not 0"));
  CHECK(contains(refusal(sparse_payload({1, 0, 0, 0, 1, 2, 0, 0, 0x80, 0x3f}), 10),
                 "the bitmap has 2 set bits instead of the declared 1"));
  CHECK(contains(refusal(sparse_payload({1, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f}), 10),
                 "the bitmap has 0 set bits instead of the declared 1"));
}

TEST_CASE("hostile payload: sparse bytes that are missing or left over") {
  CHECK(refusal(sparse_payload({1, 0, 0, 0, 2, 0, 0, 0x80}), 100) ==
        "corrupt: from value 0 on: the payload is truncated");
  CHECK(refusal(sparse_payload({1, 0, 0, 0, 2, 0, 0, 0x80, 0x3f, 0}), 100) ==
        "corrupt: the payload has extra bytes after the last value");
}

TEST_CASE("hostile zstd: frames of another length than declared") {
  const std::vector<std::byte> raw(10'000);
  CHECK(refusal(zstd_payload(zstd_frame(raw, 17), 5000), 5000) == "accepted");
  CHECK(contains(refusal(zstd_payload(zstd_frame(raw, 17), 5001), 5001),
                 "the frame decompresses to 10000 bytes instead of the declared 10002"));
  CHECK(contains(refusal(zstd_payload(zstd_frame(raw, 17), 4999), 4999),
                 "the frame decompresses to more than the declared 9998 bytes"));
}

TEST_CASE("hostile zstd: a bomb stops at the declared size") {
  // 64 MiB of zeros in less than 8 KiB; the manifest declares the largest permitted size.
  const std::vector<std::byte> bomb = zstd_frame(std::vector<std::byte>(64 << 20), 17);
  CHECK(bomb.size() < 8192);
  CHECK(contains(refusal(zstd_payload(bomb, 1000), 1000), "more than the declared 2000 bytes"));
}

TEST_CASE("hostile zstd: frames cut short, doubled, followed by more, or none at all") {
  const std::vector<std::byte> raw(10'000);
  const auto frame = zstd_frame(raw, 17);
  for (std::size_t size = 1; size < frame.size(); ++size) {
    auto cut = frame;
    cut.resize(size);
    CHECK(contains(refusal(zstd_payload(cut, 5000), 5000), "corrupt: "));
  }
  auto doubled = frame;
  doubled.insert(doubled.end(), frame.begin(), frame.end());
  CHECK(refusal(zstd_payload(doubled, 5000), 5000) == "corrupt: zstd: bytes follow the frame");
  auto more = frame;
  more.push_back(std::byte{0});
  CHECK(refusal(zstd_payload(more, 5000), 5000) == "corrupt: zstd: bytes follow the frame");
  CHECK(contains(refusal(zstd_payload(raw, 5000), 5000), "does not begin with a zstd frame"));
  // An empty skippable frame in front of the data frame.
  auto skipping = bytes_of({0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0});
  skipping.insert(skipping.end(), frame.begin(), frame.end());
  CHECK(contains(refusal(zstd_payload(skipping, 5000), 5000), "does not begin with a zstd frame"));
}

TEST_CASE("hostile zstd: a frame that wants a larger window than ours is refused") {
  std::vector<std::byte> raw(1 << 20);
  CHECK(refusal(zstd_payload(zstd_frame(raw, kZstdWindowLog), 1 << 19), 1 << 19) == "accepted");
  CHECK(contains(refusal(zstd_payload(zstd_frame(raw, kZstdWindowLog + 1), 1 << 19), 1 << 19),
                 "corrupt: from value 0 on: zstd: "));
}

TEST_CASE("manifest: a payload has exactly the bytes that its codec makes of the coverage") {
  // 100,000 values: 391 blocks of int8, 196 buckets of QSGD (five bits a value).
  const std::pair<Codec, std::uint64_t> sizes[] = {{Codec::kFloat32, 400'000},
                                                   {Codec::kFloat16, 200'000},
                                                   {Codec::kBfloat16, 200'000},
                                                   {Codec::kInt8, 101'564},
                                                   {Codec::kQsgd, 63'284}};
  for (const auto& [codec, size] : sizes) {
    CAPTURE(static_cast<int>(codec));
    const std::uint32_t levels = codec == Codec::kQsgd ? 15 : 0;
    CHECK(validate(manifest(codec, size, 0, levels)));
    CHECK_FALSE(validate(manifest(codec, size - 1, 0, levels)));
    CHECK_FALSE(validate(manifest(codec, size + 1, 0, levels)));
    CHECK(validate(manifest(codec, 1000, size, levels)));
    CHECK_FALSE(validate(manifest(codec, 1000, size + 1, levels)));
  }
}

TEST_CASE("manifest: a sparse payload has a count for each block, and at most a bitmap and all values") {
  CHECK(validate(manifest(Codec::kSparse, 8)));
  CHECK_FALSE(validate(manifest(Codec::kSparse, 7)));
  CHECK(validate(manifest(Codec::kSparse, 8 + 12'500 + 400'000)));
  const auto error = validate(manifest(Codec::kSparse, 8 + 12'500 + 400'001)).error();
  CHECK(error.message ==
        "a coverage of 100000 parameters needs 8 to 412508 bytes of payload, but payload_size is 412509");
  CHECK(validate(manifest(Codec::kSparse, 100, 412'508)));
  CHECK_FALSE(validate(manifest(Codec::kSparse, 100, 412'509)));
}

TEST_CASE("manifest: levels belong to QSGD, from 1 to 127") {
  CHECK(contains(validate(manifest(Codec::kFloat16, 200'000, 0, 1)).error().message, "levels is 1"));
  CHECK(contains(validate(manifest(Codec::kQsgd, 63'284)).error().message, "QSGD with 0 levels"));
  CHECK(contains(validate(manifest(Codec::kQsgd, 63'284, 0, 128)).error().message, "QSGD with 128 levels"));
}

TEST_CASE("manifest: zstd that could not be so long or so short is refused") {
  const std::uint64_t raw = 400'000;
  CHECK(validate(manifest(Codec::kFloat32, raw + raw / 256 + 64, raw)));
  CHECK(contains(validate(manifest(Codec::kFloat32, raw + raw / 256 + 65, raw)).error().message,
                 "zstd produces at most 401626 bytes from 400000"));
  CHECK(validate(manifest(Codec::kFloat32, 13, raw)));  // 400,000 / 32,768 = 12.2
  CHECK(contains(validate(manifest(Codec::kFloat32, 12, raw)).error().message,
                 "a zstd payload of 12 bytes cannot expand to 400000"));
}

TEST_CASE("manifest: an update of zeros passes in every codec, zstd or not, and decodes to zeros") {
  const std::vector<float> zeros(3'000'000);
  for (const Codec codec :
       {Codec::kFloat32, Codec::kFloat16, Codec::kBfloat16, Codec::kInt8, Codec::kQsgd, Codec::kSparse})
    for (const bool zstd : {false, true}) {
      CAPTURE(static_cast<int>(codec));
      std::vector<float> seen(zeros.size(), 1.0F);
      const EncodedPayload payload = encode_payload({.codec = codec, .zstd = zstd}, zeros, seen, Rng(1));
      CHECK(same_bits(seen, zeros));
      const auto values = decoded(payload, zeros.size());
      REQUIRE_MESSAGE(values, refusal(payload, zeros.size()));
      CHECK(same_bits(*values, zeros));
    }
}

}  // namespace fedge::protocol
