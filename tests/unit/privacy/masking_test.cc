#include "privacy/secure_aggregation/masking.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "core/platform/thread_pool.h"
#include "core/rng.h"
#include "tests/unit/privacy/secure_session.h"

namespace fedge::privacy {
namespace {

Secret key_of(std::uint8_t name) {
  std::array<std::uint8_t, 32> bytes{};
  bytes.fill(name);
  return Secret(bytes);
}

// A reference: adds word p of a stream, one word at a time.
template <class Word>
void mask_slowly(std::vector<Word>& words, const Coverage& coverage, std::span<const MaskTerm> terms,
                 StreamCipher cipher) {
  for (const MaskTerm& term : terms) {
    const std::size_t bytes = kMaxScalars * 8 + coverage.end() * sizeof(Word);
    std::vector<std::uint8_t> stream(bytes);
    Keystream keystream(cipher);
    keystream.start(*term.key);
    keystream.next(stream);
    for (std::size_t position = 0; position < words.size(); ++position) {
      const std::size_t parameter = coverage.parameter_at(position);
      if (term.where != nullptr && !term.where->contains(parameter)) continue;
      Word mask = 0;
      for (std::size_t b = sizeof(Word); b-- > 0;)
        mask = static_cast<Word>((mask << 8) | stream[kMaxScalars * 8 + parameter * sizeof(Word) + b]);
      words[position] = term.take_away ? words[position] - mask : words[position] + mask;
    }
  }
}

template <class Word>
void check_against_slow(const Coverage& coverage, const std::vector<Coverage>& where) {
  const std::array<Secret, 3> keys = {key_of(1), key_of(2), key_of(3)};
  std::vector<MaskTerm> terms = {
      {&keys[0], false, nullptr}, {&keys[1], true, &where[0]}, {&keys[2], false, &where[1]}};
  Rng rng(4);
  std::vector<Word> words(coverage.count());
  for (Word& word : words) word = static_cast<Word>(rng.next_u64());
  ThreadPool pool(3);
  Sequential here;
  for (const StreamCipher cipher : {StreamCipher::kAes256Ctr, StreamCipher::kChaCha20}) {
    auto expected = words;
    mask_slowly(expected, coverage, terms, cipher);
    for (Parallel* parallel : {static_cast<Parallel*>(&here), static_cast<Parallel*>(&pool)}) {
      auto masked = words;
      apply_masks(std::span(masked), coverage, terms, cipher, *parallel);
      CHECK(masked == expected);
      for (MaskTerm& term : terms) term.take_away = !term.take_away;
      apply_masks(std::span(masked), coverage, terms, cipher, *parallel);
      CHECK(masked == words);
      for (MaskTerm& term : terms) term.take_away = !term.take_away;
    }
  }
}

}  // namespace

TEST_CASE("masks: the blocks and threads give what one word after the other does, in both rings") {
  const std::vector<Coverage> where = {Coverage::of({{3, 17}, {40, 41}, {100, 90'000}}),
                                       Coverage::of({{0, 5}, {16, 33'000}, {50'000, 200'000}})};
  for (const Coverage& coverage :
       {Coverage::all(100'003), Coverage::of({{5, 6}, {7, 8}, {15, 4000}, {60'001, 100'000}})}) {
    check_against_slow<std::uint32_t>(coverage, where);
    check_against_slow<std::uint64_t>(coverage, where);
  }
  check_against_slow<std::uint32_t>(Coverage(), where);
}

TEST_CASE("masks: a parameter's mask does not depend on what else is covered, nor on scalars") {
  const Secret key = key_of(9);
  const MaskTerm term{&key, false, nullptr};
  Sequential here;
  std::vector<std::uint32_t> all(5000);
  apply_masks(std::span(all), Coverage::all(5000), {&term, 1}, StreamCipher::kAes256Ctr, here);
  std::vector<std::uint32_t> some(10);
  apply_masks(std::span(some), Coverage::of({{4001, 4011}}), {&term, 1}, StreamCipher::kAes256Ctr, here);
  for (std::size_t i = 0; i < some.size(); ++i) CHECK(some[i] == all[4001 + i]);
  std::vector<std::uint64_t> scalars(kMaxScalars);
  apply_scalar_masks(scalars, {&term, 1}, StreamCipher::kAes256Ctr);
  std::uint64_t first = 0;
  std::memcpy(&first, all.data(), sizeof first);
  for (const std::uint64_t scalar : scalars) CHECK(scalar != first);
}

TEST_CASE("masks: what the coordinator sees of an update is uniform, and another each time") {
  // One fixed update of zeros over many sessions. Chi-square of each byte's values, 255 degrees of freedom,
  // exceeds 380 once in a million times. The seeds are fixed.
  std::array<std::array<int, 256>, 4> counts{};
  std::map<std::uint32_t, int> words;
  constexpr int kSessions = 400;
  constexpr std::size_t kParameters = 64;
  for (int s = 0; s < kSessions; ++s) {
    TestSession session(
        3,
        {.rules = {.min_survivors = 3}, .parameters = kParameters, .attempt = static_cast<std::uint32_t>(s)});
    REQUIRE_FALSE(session.run().failure);
    const auto own = session.update(0);
    for (std::size_t p = 0; p < kParameters; ++p) {
      const std::uint32_t mask = session.seen.at(TestSession::id(0))[p] - own[p];
      ++words[mask];
      for (std::size_t b = 0; b < 4; ++b) ++counts[b].at((mask >> (8 * b)) & 0xff);
    }
  }
  constexpr double kExpected = kSessions * static_cast<double>(kParameters) / 256;
  for (const auto& count : counts) {
    double chi = 0;
    for (const int c : count) chi += (c - kExpected) * (c - kExpected) / kExpected;
    CHECK(chi < 380);
  }
  // Hardly any of 25,600 words of 32 bits occurs twice.
  CHECK(words.size() > kSessions * kParameters - 5);
}

}  // namespace fedge::privacy
