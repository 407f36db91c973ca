#include "core/crypto/sealed_box.h"

#include <doctest/doctest.h>

#include <string>

namespace fedge {
namespace {

SecretKey key_of(std::uint8_t name) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = name;
  return SecretKey::from_seed(seed);
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("sealed box: who has the key reads it, and nobody else, nor what was changed") {
  const SecretKey alice = key_of(1);
  const SecretKey bob = key_of(2);
  for (const std::string& text : {std::string(), std::string("a chunk"), std::string(100'000, 'x')}) {
    const auto sealed = seal(alice.public_key(), bytes_of(text));
    REQUIRE(sealed);
    CHECK(sealed->size() == text.size() + 48);
    const auto opened = unseal(alice, *sealed);
    REQUIRE(opened);
    CHECK(*opened == bytes_of(text));
    CHECK(unseal(bob, *sealed).error().code == ErrorCode::kCorrupt);
    for (const std::size_t at : {std::size_t{0}, std::size_t{31}, std::size_t{32}, sealed->size() - 1}) {
      auto changed = *sealed;
      changed[at] ^= std::byte{1};
      CHECK_FALSE(unseal(alice, changed));
    }
    CHECK_FALSE(unseal(alice, std::span(*sealed).first(sealed->size() - 1)));
  }
  CHECK_FALSE(unseal(alice, {}));
}

TEST_CASE("sealed box: sealed twice the same bytes look different, and a key that is none gets nothing") {
  const SecretKey alice = key_of(1);
  const auto one = seal(alice.public_key(), bytes_of("a chunk"));
  const auto two = seal(alice.public_key(), bytes_of("a chunk"));
  REQUIRE(one);
  REQUIRE(two);
  CHECK(*one != *two);
  CHECK(seal(PublicKey{}, bytes_of("a chunk")).error().code == ErrorCode::kInvalid);
}

}  // namespace fedge
