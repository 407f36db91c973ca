#include "dht/overlays/id.h"

#include <doctest/doctest.h>

#include "core/rng.h"

using namespace fedge;
using namespace fedge::dht;

// Invariant 11.
TEST_CASE("overlay ids: intervals wrap, open from a to a it is the ring without a, closed all of it") {
  constexpr Id kTop = ~Id{0};
  CHECK(in_open(5, 3, 8));
  CHECK(!in_open(3, 3, 8));
  CHECK(!in_open(8, 3, 8));
  CHECK(in_open_closed(8, 3, 8));
  CHECK(!in_open_closed(3, 3, 8));
  CHECK(in_open(1, kTop - 2, 4));
  CHECK(in_open(kTop, kTop - 2, 4));
  CHECK(!in_open(5, kTop - 2, 4));
  CHECK(in_open_closed(4, kTop - 2, 4));
  CHECK(!in_open_closed(kTop - 2, kTop - 2, 4));
  for (const Id a : {Id{0}, Id{7}, kTop}) {
    CHECK(!in_open(a, a, a));
    CHECK(in_open(a + 1, a, a));
    CHECK(in_open(a - 1, a, a));
    CHECK(in_open_closed(a, a, a));
    CHECK(in_open_closed(a + 1, a, a));
    CHECK(in_open_closed(a - 1, a, a));
  }
}

// Invariant 11, step by step on a ring of 16.
TEST_CASE("overlay ids: intervals are what one meets on the way round") {
  const auto scaled = [](unsigned x) { return Id{x} << 60; };
  for (unsigned from = 0; from < 16; ++from)
    for (unsigned to = 0; to < 16; ++to) {
      std::array<bool, 16> met{};
      unsigned at = from;
      do {
        at = (at + 1) % 16;
        met[at] = true;
      } while (at != to);
      for (unsigned x = 0; x < 16; ++x) {
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(x);
        CHECK(in_open_closed(scaled(x), scaled(from), scaled(to)) == met[x]);
        CHECK(in_open(scaled(x), scaled(from), scaled(to)) == (met[x] && x != to));
      }
    }
}

TEST_CASE("overlay ids: digits, shared prefixes and distances of a worked example") {
  constexpr Id kA = 0x65a1fc0000000000;
  constexpr Id kB = 0x65a2120000000000;
  CHECK(shared_prefix(kA, kB, 4) == 3);
  CHECK(shared_prefix(kA, kB, 2) ==
        7);  // a1 = ..0001, a2 = ..0010: the first half of the fourth digit is equal
  CHECK(shared_prefix(kA, kA, 4) == 16);
  CHECK(digit(kA, 0, 4) == 6);
  CHECK(digit(kA, 3, 4) == 1);
  CHECK(digit(kB, 7, 2) == 2);
  CHECK(ring_distance(1, ~Id{0}) == 2);
  CHECK(ring_distance(~Id{0}, 1) == 2);
  CHECK(magnitude(1) == 0);
  CHECK(magnitude(Id{1} << 63) == 63);
  CHECK(magnitude(12) == 3);
}

// Invariant 4.
TEST_CASE("overlay ids: XOR is a metric, and for each distance there is one other end") {
  Rng rng(5);
  for (int i = 0; i < 1000; ++i) {
    const Id a = rng.next_u64();
    const Id b = rng.next_u64();
    const Id c = rng.next_u64();
    CHECK(xor_distance(a, a) == 0);
    CHECK(xor_distance(a, b) != 0);
    CHECK(xor_distance(a, b) == xor_distance(b, a));
    __extension__ using Wide = unsigned __int128;
    CHECK(Wide{xor_distance(a, c)} <= Wide{xor_distance(a, b)} + xor_distance(b, c));
    CHECK(xor_distance(a, a ^ xor_distance(a, b)) == xor_distance(a, b));
  }
}

TEST_CASE("overlay ids: a key is the beginning of its name's SHA-256") {
  CHECK(key_of("abc") == 0xba7816bf8f01cfeaULL);  // FIPS 180-4, appendix B.1
}
