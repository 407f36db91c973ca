#include "learn/data/idx.h"

#include "core/rng.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::learn;
using learn::test::gzip;
using learn::test::idx;

namespace {

struct Contents {
  std::vector<std::size_t> dimensions;
  std::vector<std::uint8_t> elements;
};

Result<Contents> read_all(const learn::test::Bytes& bytes, std::size_t rank) {
  FEDGE_TRY(reader, IdxReader::open(std::as_bytes(std::span(bytes)), "file.idx", rank));
  Contents contents{reader.dimensions(), std::vector<std::uint8_t>(reader.elements())};
  FEDGE_TRY_VOID(reader.read(contents.elements));
  FEDGE_TRY_VOID(reader.finish());
  return contents;
}

void check_idx_refused(const learn::test::Bytes& bytes, std::size_t rank, const std::string& sentence) {
  CAPTURE(sentence);
  const auto result = read_all(bytes, rank);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kCorrupt);
  CHECK_MESSAGE(result.error().message.find("file.idx") == 0, result.error().message);
  CHECK_MESSAGE(result.error().message.find(sentence) != std::string::npos, result.error().message);
}

const learn::test::Bytes kPlain = idx({2, 1, 3}, {10, 20, 30, 40, 50, 255});

}  // namespace

TEST_CASE("idx: a file written byte by byte reads back, plain and packed") {
  for (const auto& bytes : {kPlain, gzip(kPlain)}) {
    const auto contents = read_all(bytes, 3);
    REQUIRE(contents.has_value());
    CHECK(contents->dimensions == std::vector<std::size_t>{2, 1, 3});
    CHECK(contents->elements == std::vector<std::uint8_t>{10, 20, 30, 40, 50, 255});
  }
}

TEST_CASE("idx: reading in pieces gives the same elements as reading at once") {
  learn::test::Bytes elements(5000);
  Rng rng(1);
  for (auto& element : elements) element = static_cast<std::uint8_t>(rng.below(7));
  const auto bytes = gzip(idx({5000}, elements));
  auto reader = IdxReader::open(std::as_bytes(std::span(bytes)), "file.idx", 1);
  REQUIRE(reader.has_value());
  learn::test::Bytes got;
  for (std::size_t piece = 1; got.size() < elements.size(); piece = piece * 2 + 1) {
    learn::test::Bytes part(std::min(piece, elements.size() - got.size()));
    REQUIRE(reader->read(part).has_value());
    got.insert(got.end(), part.begin(), part.end());
  }
  CHECK(got == elements);
  CHECK(reader->finish().has_value());
}

TEST_CASE("idx: a header that is not what was asked for is refused by what it says") {
  check_idx_refused({}, 1, "is not an IDX file");
  check_idx_refused({0, 0, 8}, 1, "is not an IDX file");
  check_idx_refused({'P', 'K', 3, 4, 0, 0, 0, 1, 9}, 1, "is not an IDX file");
  check_idx_refused(idx({1}, {0, 0, 0, 0}, 0x0D), 1, "type 13, expected unsigned bytes");
  check_idx_refused(kPlain, 1, "has 3 dimensions, expected 1");
  check_idx_refused({0, 0, 8, 3, 0, 0, 0, 1, 0, 0}, 3, "header is incomplete");
  check_idx_refused(idx({0, 28, 28}, {}), 3, "dimension of size 0");
}

TEST_CASE(
    "idx: a header that announces more than the bytes can hold is refused before anything is allocated") {
  check_idx_refused(idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {1, 2, 3}), 3, "declares more elements");
  check_idx_refused(idx({4000000000U}, {1, 2, 3}), 1, "declares more elements");
  check_idx_refused(gzip(idx({4000000000U}, {1, 2, 3})), 1, "declares more elements");
}

TEST_CASE("idx: a file cut anywhere is refused, plain and packed") {
  for (const auto& whole : {kPlain, gzip(kPlain)}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      const auto result =
          read_all(learn::test::Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)), 3);
      REQUIRE_FALSE(result.has_value());
      CHECK(result.error().code == ErrorCode::kCorrupt);
    }
  }
  auto headless = gzip(kPlain);
  headless.erase(headless.end() - 4, headless.end());
  check_idx_refused(headless, 3, "the end of the gzip data is missing");
}

TEST_CASE("idx: bytes after the last element are refused") {
  auto longer = kPlain;
  longer.push_back(7);
  check_idx_refused(longer, 3, "more data than its header declares");
  check_idx_refused(gzip(longer), 3, "more data than its header declares");
  auto packed = gzip(kPlain);
  packed.push_back(7);
  check_idx_refused(packed, 3, "extra bytes after the end");
}

TEST_CASE("idx: a wrong CRC-32 or length in the gzip trailer is named") {
  auto wrong_crc = gzip(kPlain);
  wrong_crc[wrong_crc.size() - 8] ^= 1;
  check_idx_refused(wrong_crc, 3, "its CRC-32 does not match");
  auto wrong_length = gzip(kPlain);
  wrong_length[wrong_length.size() - 4] ^= 1;
  check_idx_refused(wrong_length, 3, "its length does not match");
}

TEST_CASE("idx: no single damaged bit of a packed file goes unnoticed or crashes the reader") {
  learn::test::Bytes elements(600);
  Rng rng(2);
  for (auto& element : elements) element = static_cast<std::uint8_t>(rng.below(256));
  const auto whole = gzip(idx({600}, elements));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    auto damaged = whole;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto result = read_all(damaged, 1);
    // The time stamp, extra flags and operating system in the gzip header do not affect the content.
    if (result.has_value()) CHECK_MESSAGE(result->elements == elements, "bit " << bit);
  }
}
