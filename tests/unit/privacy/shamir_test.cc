#include "privacy/secure_aggregation/shamir.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/rng.h"

namespace fedge::privacy {
namespace {

// Deterministic random bytes for tests.
Entropy repeatable(std::uint64_t seed) {
  return [rng = Rng(seed)](std::span<std::uint8_t> out) mutable {
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(rng.next_u32());
  };
}

std::vector<std::uint32_t> points(std::uint32_t count) {
  std::vector<std::uint32_t> result(count);
  std::iota(result.begin(), result.end(), 1U);
  return result;
}

}  // namespace

TEST_CASE("shamir: any so many shares give the secret back, in any order") {
  const Entropy entropy = repeatable(1);
  for (std::uint32_t n = 1; n <= 7; ++n)
    for (std::uint32_t t = 1; t <= n; ++t) {
      const Secret secret = draw_secret(entropy);
      const std::vector<Share> shares = split(secret, t, points(n), entropy);
      for (std::uint32_t chosen = 0; chosen < (1U << n); ++chosen) {
        std::vector<std::uint32_t> at;
        std::vector<Share> held;
        for (std::uint32_t i = n; i-- > 0;)
          if ((chosen >> i) & 1U) {
            at.push_back(i + 1);
            held.push_back(shares[i]);
          }
        if (at.empty()) continue;
        const auto recombination = Recombination::of(at);
        REQUIRE(recombination);
        const auto found = recombination->combine(held);
        // Fewer shares give another secret or none.
        CHECK((found && *found == secret) == (at.size() >= t));
      }
    }
}

TEST_CASE("shamir: secrets of all ones and all zeros, and shares through bytes") {
  for (const int fill : {0x00, 0xff, 0x80, 0x01}) {
    std::array<std::uint8_t, 32> bytes{};
    bytes.fill(static_cast<std::uint8_t>(fill));
    const Secret secret(bytes);
    const auto shares = split(secret, 3, points(5), repeatable(2));
    std::vector<Share> read;
    for (std::size_t i = 0; i < 3; ++i) {
      std::array<std::uint8_t, kShareBytes> sent{};
      shares[i].encode(sent);
      const auto share = Share::decode(sent);
      REQUIRE(share);
      CHECK(*share == shares[i]);
      read.push_back(*share);
    }
    const auto found = Recombination::of(points(3))->combine(read);
    REQUIRE(found);
    CHECK(*found == secret);
  }
}

TEST_CASE("shamir: a share says nothing of the secret: its numbers are uniform") {
  // 64 bins of the highest bits of 8192 shares of one secret. Chi-square with 63 degrees of freedom exceeds
  // 120 once in 20,000 times. The seed is fixed.
  const Entropy entropy = repeatable(3);
  const Secret secret = draw_secret(entropy);
  std::array<std::array<int, 64>, kSecretLimbs> bins{};
  constexpr int kDraws = 8192;
  for (int i = 0; i < kDraws; ++i) {
    const Share share = split(secret, 2, points(2), entropy).front();
    for (std::size_t l = 0; l < kSecretLimbs; ++l) ++bins[l].at(share.limbs[l] >> 55);
  }
  for (const auto& bin : bins) {
    double chi = 0;
    for (const int count : bin) chi += (count - kDraws / 64.0) * (count - kDraws / 64.0) / (kDraws / 64.0);
    CHECK(chi < 120);
  }
}

TEST_CASE("shamir: known shares") {
  // f(x) = secret + 5x + 7x^2 in each limb, by hand: the secret is 3 in its lowest limb, 0 in the others.
  Secret secret;
  secret.bytes()[0] = 3;
  int drawn = 0;
  const Entropy fixed = [&](std::span<std::uint8_t> out) {
    std::ranges::fill(out, std::uint8_t{0});
    // split() draws the coefficient of the highest power first, five limbs each.
    for (std::size_t i = 0; i < out.size(); i += 8) out[i] = i < 40 ? 7 : 5;
    ++drawn;
  };
  const auto shares = split(secret, 3, points(4), fixed);
  CHECK(drawn == 1);
  const std::uint64_t of_three[] = {15, 41, 81, 135};
  const std::uint64_t of_zero[] = {12, 38, 78, 132};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(shares[i].limbs[0] == of_three[i]);
    for (std::size_t l = 1; l < kSecretLimbs; ++l) CHECK(shares[i].limbs[l] == of_zero[i]);
  }
}

TEST_CASE("shamir: numbers outside the field are drawn again, and never taken from others") {
  int calls = 0;
  const Entropy high = [&](std::span<std::uint8_t> out) {
    // The first draw gives 2^61 - 1, which is not a field element.
    std::ranges::fill(out, static_cast<std::uint8_t>(calls++ == 0 ? 0xff : 0x11));
  };
  const auto shares = split(Secret(), 2, points(2), high);
  CHECK(calls == 1 + static_cast<int>(kSecretLimbs));
  CHECK(shares[0].limbs[0] == 0x1111111111111111 % (kShamirPrime + 1));
  std::array<std::uint8_t, kShareBytes> bytes{};
  bytes.fill(0xff);
  CHECK(Share::decode(bytes).error().code == ErrorCode::kInvalid);
  CHECK_FALSE(Recombination::of(std::vector<std::uint32_t>{1, 2, 1}));
  CHECK_FALSE(Recombination::of(std::vector<std::uint32_t>{1, 0}));
}

}  // namespace fedge::privacy
