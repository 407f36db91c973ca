// Activations at the cut as bytes: sizes, exactness, errors of rounding and their feedback, hostile bytes.
#include "learn/split/cut_codec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/rng.h"
#include "tests/unit/learn/split/split_fixture.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

constexpr std::size_t kCutWidth = 6;
constexpr std::size_t kCutLength = 4;

std::vector<float> cut_values(std::size_t sequences, std::uint64_t seed) {
  std::vector<float> values(sequences * kCutLength * kCutWidth);
  Rng rng(seed);
  for (float& value : values) value = static_cast<float>(rng.normal());
  return values;
}

// The values as the receiver sees them.
std::vector<float> as_received(const CutCodec& codec, const std::vector<float>& values,
                               const SentTokens& tokens) {
  std::vector<std::byte> bytes;
  codec.encode(values, tokens, bytes);
  CHECK(bytes.size() == codec.bytes(tokens));
  std::vector<float> received(values.size(), 99);
  REQUIRE(codec.decode(bytes, tokens, received));
  return received;
}

std::string cut_refusal(const CutCodec& codec, std::vector<std::byte> bytes, const SentTokens& tokens) {
  std::vector<float> received(tokens.of.size() * kCutLength * kCutWidth);
  const auto decoded = codec.decode(bytes, tokens, received);
  return decoded ? "accepted" : decoded.error().message;
}

}  // namespace

TEST_CASE("cut codec: tokens after the last target of a sequence are not sent, and are read as zeros") {
  const std::vector<Token> targets = {3,        kNoToken, 5, kNoToken, kNoToken, kNoToken,
                                      kNoToken, kNoToken, 1, 2,        3,        4};
  const std::vector<std::uint32_t> of = sent_tokens(targets, kCutLength);
  CHECK(of == std::vector<std::uint32_t>{3, 0, 4});
  const SentTokens tokens{of, kCutLength};
  const auto values = cut_values(3, 1);
  for (const auto encoding : {CutEncoding::kFloat32, CutEncoding::kInt8}) {
    const CutCodec codec(encoding, kCutWidth);
    CHECK(codec.bytes(tokens) == 7 * (encoding == CutEncoding::kFloat32 ? kCutWidth * 4 : 4 + kCutWidth));
    const auto received = as_received(codec, values, tokens);
    for (std::size_t s = 0; s < 3; ++s)
      for (std::size_t t = 0; t < kCutLength; ++t) {
        const float* row = received.data() + (s * kCutLength + t) * kCutWidth;
        if (t >= of[s])
          CHECK(std::all_of(row, row + kCutWidth, [](float value) { return value == 0; }));
        else if (encoding == CutEncoding::kFloat32)
          CHECK(std::equal(row, row + kCutWidth, values.data() + (s * kCutLength + t) * kCutWidth));
      }
  }
}

TEST_CASE("cut codec: int8 is off by at most half a scale, and small or huge tokens survive") {
  const CutCodec codec(CutEncoding::kInt8, kCutWidth);
  const std::vector<std::uint32_t> of = {4, 4};
  auto values = cut_values(2, 2);
  std::fill_n(values.begin(), kCutWidth, 0.0F);
  std::fill_n(values.begin() + kCutWidth, kCutWidth, 1e-42F);
  values[2 * kCutWidth] = 3e38F;
  const auto received = as_received(codec, values, {of, kCutLength});
  for (std::size_t t = 0; t < 8; ++t) {
    float largest = 0;
    for (std::size_t i = 0; i < kCutWidth; ++i)
      largest = std::max(largest, std::abs(values[t * kCutWidth + i]));
    for (std::size_t i = 0; i < kCutWidth; ++i) {
      const double error = std::abs(static_cast<double>(received[t * kCutWidth + i]) -
                                    static_cast<double>(values[t * kCutWidth + i]));
      // A scale that underflows loses its token, whose values are below the smallest normal number.
      CHECK(error <= std::max(0.5001 * static_cast<double>(largest) / 127, 1e-42));
    }
  }
}

TEST_CASE("cut codec: bytes of another length and values that are not finite are refused, with their place") {
  const std::vector<std::uint32_t> of = {3, 2};
  const SentTokens tokens{of, kCutLength};
  for (const auto encoding : {CutEncoding::kFloat32, CutEncoding::kInt8}) {
    const CutCodec codec(encoding, kCutWidth);
    std::vector<std::byte> bytes;
    codec.encode(cut_values(2, 3), tokens, bytes);
    CHECK(cut_refusal(codec, bytes, tokens) == "accepted");
    auto shorter = bytes;
    shorter.pop_back();
    CHECK(cut_refusal(codec, shorter, tokens) == "the values at the cut have " +
                                                     std::to_string(bytes.size() - 1) + " bytes, expected " +
                                                     std::to_string(bytes.size()) + " for 5 tokens");
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      auto changed = bytes;
      std::memcpy(changed.data() + 3 * (bytes.size() / 5), &bad, sizeof(bad));
      CHECK(cut_refusal(codec, changed, tokens) == "the values at the cut are not finite in token 3 of 5");
    }
  }
  // Values of a diverged model are refused, whatever the codec.
  for (const auto encoding : {CutEncoding::kFloat32, CutEncoding::kInt8})
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      auto values = cut_values(2, 3);
      values[kCutWidth + 2] = bad;
      std::vector<std::byte> bytes;
      CutCodec(encoding, kCutWidth).encode(values, tokens, bytes);
      CHECK(cut_refusal(CutCodec(encoding, kCutWidth), bytes, tokens) ==
            "the values at the cut are not finite in token 1 of 5");
    }
  // A finite scale whose products are not.
  const CutCodec codec(CutEncoding::kInt8, kCutWidth);
  std::vector<std::byte> bytes(codec.bytes(tokens), std::byte{127});
  const float large = 3e38F;
  std::memcpy(bytes.data(), &large, sizeof(large));
  CHECK(cut_refusal(codec, bytes, tokens) == "the values at the cut are not finite in token 0 of 5");
}

TEST_CASE("cut codec: with feedback, what is sent of a sample adds up to what it is") {
  const CutCodec codec(CutEncoding::kInt8, kCutWidth);
  const std::vector<std::uint32_t> of = {4, 3};
  const SentTokens tokens{of, kCutLength};
  const std::vector<std::uint32_t> samples = {7, 5};
  const std::vector<std::uint32_t> swapped = {5, 7};
  const std::vector<std::uint32_t> of_swapped = {3, 4};
  const auto values = cut_values(2, 4);
  CutFeedback feedback;
  std::vector<double> total(values.size());
  constexpr int kTimes = 50;
  for (int time = 0; time < kTimes; ++time) {
    // The samples change places, with their values.
    const bool swap = time % 2 == 1;
    std::vector<float> now = values;
    if (swap) std::rotate(now.begin(), now.begin() + kCutLength * kCutWidth, now.end());
    const SentTokens sent_now = swap ? SentTokens{of_swapped, kCutLength} : tokens;
    std::vector<std::byte> bytes;
    feedback.encode(codec, now, sent_now, swap ? swapped : samples, bytes);
    std::vector<float> received(values.size());
    REQUIRE(codec.decode(bytes, sent_now, received));
    if (swap) std::rotate(received.begin(), received.begin() + kCutLength * kCutWidth, received.end());
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += static_cast<double>(received[i]);
  }
  const auto once = as_received(codec, values, tokens);
  double with = 0, without = 0;
  for (std::size_t i = 0; i < 7 * kCutWidth; ++i) {
    with = std::max(with, std::abs(total[i] / kTimes - static_cast<double>(values[i])));
    without = std::max(without, static_cast<double>(std::abs(once[i] - values[i])));
  }
  CHECK(with < without / 10);
}

TEST_CASE("cut codec: int8 changes the training a little, and feedback is part of both halves") {
  const learn::test::SplitProblem p(true);
  TrainingSpec spec;
  spec.learning_rate = 0.2F;
  spec.batch_size = 12;
  spec.local_epochs = 4;
  spec.local_model = LocalModel::kSplit;
  const SplitLayout layout = p.layout();
  const Coverage below = layout.below(2);
  const auto trained = [&](CutEncoding codec, bool feedback, bool kept) {
    TrainingSpec own = spec;
    own.split = {.keeps_targets = kept, .codec = codec, .feedback = feedback};
    std::vector<float> parameters = p.parameters;
    UpperHalf upper(*p.model, own);
    LocalPeer peer(upper, layout, parameters, nullptr);
    LowerHalf lower(peer, 2, own.split);
    Trainer(*p.model, own)
        .train(parameters, p.data, p.samples, Rng(5), {.coverage = &below, .split = &lower});
    CHECK_FALSE(lower.fault());
    return parameters;
  };
  const auto exact = trained(CutEncoding::kFloat32, false, false);
  CHECK(exact == trained(CutEncoding::kFloat32, false, true));
  double moved = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    moved = std::max(moved, static_cast<double>(std::abs(exact[i] - p.parameters[i])));
  for (const bool kept : {false, true}) {
    const auto rounded = trained(CutEncoding::kInt8, false, kept);
    const auto fed_back = trained(CutEncoding::kInt8, true, kept);
    CHECK(rounded != fed_back);
    for (const auto& other : {rounded, fed_back}) {
      double apart = 0;
      for (std::size_t i = 0; i < exact.size(); ++i)
        apart = std::max(apart, static_cast<double>(std::abs(exact[i] - other[i])));
      CHECK(apart > 0);
      CHECK(apart < 0.1 * moved);
    }
  }
}

TEST_CASE("cut codec: feedback for ever new samples takes no more memory than it may") {
  const CutCodec codec(CutEncoding::kInt8, 64);
  CutFeedback feedback;
  std::vector<std::byte> out;
  const std::vector<std::uint32_t> sent(8, 128);
  for (std::uint32_t step = 0; step < 100; ++step) {
    std::vector<float> values(8 * 128 * 64, 0.3F);
    std::vector<std::uint32_t> samples(8);
    for (std::uint32_t i = 0; i < 8; ++i) samples[i] = 8 * step + i;
    feedback.encode(codec, values, {sent, 128}, samples, out);
    CHECK(out.size() == codec.bytes({sent, 128}));
    REQUIRE(feedback.bytes() <= kFeedbackBytes);
  }
  // Without a limit, 100 steps of 256 KiB would take 25 MiB.
  CHECK(feedback.bytes() > kFeedbackBytes / 2);
}
