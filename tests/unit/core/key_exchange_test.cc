// Tests the primitives of secure aggregation against published vectors.
#include "core/crypto/key_exchange.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/crypto/entropy.h"
#include "core/crypto/hkdf.h"
#include "core/crypto/keystream.h"
#include "core/crypto/secret_box.h"
#include "core/crypto/sha256.h"

namespace fedge {
namespace {

std::vector<std::uint8_t> hex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(digit(text[i]) * 16 + digit(text[i + 1])));
  return bytes;
}

Secret secret(std::string_view text) {
  const auto bytes = hex(text);
  return Secret(std::span<const std::uint8_t, 32>(bytes));
}

ExchangeKey key(std::string_view text) {
  ExchangeKey key;
  std::ranges::copy(hex(text), key.bytes.begin());
  return key;
}

std::vector<std::uint8_t> numbers(std::uint8_t from, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(from + i);
  return bytes;
}

std::string derived(std::span<const std::uint8_t> ikm, std::span<const std::uint8_t> salt,
                    std::span<const std::uint8_t> info, std::size_t size) {
  std::vector<std::uint8_t> out(size);
  hkdf_sha256(ikm, salt, info, out);
  return to_hex(out);
}

std::vector<std::uint8_t> stream(StreamCipher cipher, const Secret& key, std::uint64_t offset,
                                 std::size_t size) {
  Keystream keystream(cipher);
  keystream.start(key, offset);
  std::vector<std::uint8_t> bytes(size);
  keystream.next(bytes);
  return bytes;
}

}  // namespace

TEST_CASE("key exchange: the vectors of RFC 7748, section 5.2") {
  const auto first =
      derive_shared_secret(secret("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"),
                           key("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"));
  REQUIRE(first);
  CHECK(to_hex(first->bytes()) == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
  const auto second =
      derive_shared_secret(secret("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d"),
                           key("e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493"));
  REQUIRE(second);
  CHECK(to_hex(second->bytes()) == "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");
  // The iterated test vector.
  Secret k = secret("0900000000000000000000000000000000000000000000000000000000000000");
  ExchangeKey u = key("0900000000000000000000000000000000000000000000000000000000000000");
  for (int i = 1; i <= 1000; ++i) {
    auto next = derive_shared_secret(k, u);
    REQUIRE(next);
    std::ranges::copy(k.bytes(), u.bytes.begin());
    k = std::move(*next);
    if (i == 1)
      CHECK(to_hex(k.bytes()) == "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
  }
  CHECK(to_hex(k.bytes()) == "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
}

TEST_CASE("key exchange: both sides share a secret, and a key of small order is refused") {
  const Secret a = draw_secret(system_entropy());
  const Secret b = draw_secret(system_entropy());
  const auto ab = derive_shared_secret(a, exchange_key_of(b));
  const auto ba = derive_shared_secret(b, exchange_key_of(a));
  REQUIRE(ab);
  REQUIRE(ba);
  CHECK(*ab == *ba);
  CHECK_FALSE(*ab == a);
  for (const char* weak : {"0000000000000000000000000000000000000000000000000000000000000000",
                           "0100000000000000000000000000000000000000000000000000000000000000",
                           "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"})
    CHECK(derive_shared_secret(a, key(weak)).error().code == ErrorCode::kInvalid);
}

TEST_CASE("hkdf: the vectors of RFC 5869") {
  CHECK(derived(std::vector<std::uint8_t>(22, 0x0b), numbers(0, 13), numbers(0xf0, 10), 42) ==
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  CHECK(derived(numbers(0, 80), numbers(0x60, 80), numbers(0xb0, 80), 82) ==
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da32"
        "75600c2f"
        "09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
  CHECK(derived(std::vector<std::uint8_t>(22, 0x0b), {}, {}, 42) ==
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

TEST_CASE("keystream: what `openssl enc` makes of zeros, from any place on and in any pieces") {
  const Secret aes = secret("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
  const Secret chacha = secret("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  CHECK(to_hex(stream(StreamCipher::kAes256Ctr, aes, 0, 128)) ==
        "e568f68194cf76d6174d4cc04310a85491151e5d0b7a1f1bc0d7acd0ae3e51e4170e23d1735cd2d579e63a887bc9c813480d"
        "3ceda636"
        "05659579b51694e2b82e019b0e48c439594259bf9d1bfe7e0c1428473c7519e5ea4659ccfdfafac4185c89180aebacdea750"
        "3e4569bc"
        "7c9cfaf26ad2fab75e63e9c6b2d062c0b55eccf1");
  CHECK(to_hex(stream(StreamCipher::kChaCha20, chacha, 0, 128)) ==
        "39fd2b7dd9c5196a8dbd0377b8dc4a498a35d86fbcde6accb2cc7d4cd8ea24922b23cce7a26023ab3f0eef693ac87f642582"
        "35eab1f7"
        "a32dc22762a0485b410c18b84231ade6a6d113615c61af434e27f8b1f3f5e1ad5b5cecf8fc122a35755c7208086dd1ee3c5d"
        "9d815824"
        "640e003c9ba0f65ede5d59ce0d2a4a7f31955acd");
  for (const StreamCipher cipher : {StreamCipher::kAes256Ctr, StreamCipher::kChaCha20}) {
    const auto whole = stream(cipher, aes, 0, 100'000);
    for (const std::size_t offset : {std::size_t{64}, std::size_t{4096}, std::size_t{65536}}) {
      const auto part = stream(cipher, aes, offset, 1000);
      CHECK(std::ranges::equal(part, std::span(whole).subspan(offset, 1000)));
    }
    Keystream keystream(cipher);
    keystream.start(aes);
    std::vector<std::uint8_t> pieces(40'000);
    for (std::size_t at = 0; at < pieces.size();) {
      const std::size_t size = std::min<std::size_t>(1 + at % 977, pieces.size() - at);
      keystream.next(std::span(pieces).subspan(at, size));
      at += size;
    }
    CHECK(std::ranges::equal(pieces, std::span(whole).first(pieces.size())));
    // Positions beyond 2^32 bytes and 2^32 blocks do not repeat the stream.
    const auto far = stream(cipher, aes, std::uint64_t{1} << 36, 64);
    CHECK_FALSE(std::ranges::equal(far, std::span(whole).first(64)));
  }
}

TEST_CASE("secret box: opens with the key, number and context that it was sealed with, and not otherwise") {
  const Secret a = draw_secret(system_entropy());
  const Secret b = draw_secret(system_entropy());
  const auto message = numbers(7, 80);
  const auto about = numbers(0, 40);
  const auto sealed = seal_box(a, 3, about, message);
  CHECK(sealed.size() == message.size() + kSecretBoxOverhead);
  const auto opened = open_box(a, 3, about, sealed);
  REQUIRE(opened);
  CHECK(*opened == message);
  CHECK(open_box(b, 3, about, sealed).error().code == ErrorCode::kCorrupt);
  CHECK_FALSE(open_box(a, 4, about, sealed));
  CHECK_FALSE(open_box(a, 3, numbers(1, 40), sealed));
  CHECK_FALSE(open_box(a, 3, about, std::span(sealed).first(10)));
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    auto changed = sealed;
    changed[at] ^= 1;
    CHECK_FALSE(open_box(a, 3, about, changed));
  }
}

TEST_CASE("secret: moving leaves nothing behind") {
  Secret a = draw_secret(system_entropy());
  const Secret copy = a.copy();
  const Secret b = std::move(a);
  CHECK(b == copy);
  CHECK(a == Secret());  // NOLINT(bugprone-use-after-move): that is what is tested
}

}  // namespace fedge
