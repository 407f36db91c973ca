// Tests the contribution of a masked update to the sum, and the permitted weight of the unmasked sum.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "run/secure_update.h"
#include "tests/unit/privacy/secure_session.h"

namespace fedge::run {
namespace {

constexpr std::size_t kSummedParameters = 50;

// A session of clients that have agreed on masks.
struct Agreed {
  // The second member stops before it sends an update: after sending, a member has no masks left.
  Agreed()
      : session(4, {.last = {privacy::Last::kAll, privacy::Last::kShares}, .parameters = kSummedParameters}) {
    session.run();
  }

  // The unmasked contribution of an update with this last parameter and 0.5 elsewhere.
  struct Part {
    std::vector<std::uint64_t> words;
    std::vector<std::uint64_t> scalars;
    std::optional<Error> fault;
    std::optional<std::uint64_t> release;
  };
  Part part(const privacy::MaskingSpec& spec, float last, const std::optional<PrivateSum::Noise>& noise = {},
            float others = 0.5F) {
    std::vector<float> values(kSummedParameters, others);
    values.back() = last;
    const Coverage all = Coverage::all(kSummedParameters);
    const privacy::Masking masking = session.client(1).masking();
    Sequential here;
    const auto masked = mask_update(
        {.coverage = &all, .values = values, .samples = SampleCount(7), .loss = 2, .noise = noise}, spec,
        masking, here);
    REQUIRE(masked);
    Part part{.words = {}, .scalars = masked->scalars, .fault = masked->fault, .release = masked->release};
    spec.codec == protocol::Codec::kMasked64 ? take_masks<std::uint64_t>(masking, *masked, part)
                                             : take_masks<std::uint32_t>(masking, *masked, part);
    return part;
  }
  template <class Word>
  static void take_masks(const privacy::Masking& masking, const MaskedUpdate& masked, Part& part) {
    std::vector<Word> words(kSummedParameters);
    std::vector<Word> masks(kSummedParameters);
    std::vector<std::uint64_t> scalars(part.scalars.size());
    REQUIRE(masked.words.size() == sizeof(Word) * kSummedParameters);
    std::memcpy(words.data(), masked.words.data(), masked.words.size());
    Sequential here;
    masking.apply(masks, scalars, here);
    for (std::size_t i = 0; i < words.size(); ++i)
      part.words.push_back(static_cast<Word>(words[i] - masks[i]));
    for (std::size_t s = 0; s < scalars.size(); ++s) part.scalars[s] -= scalars[s];
  }

  privacy::TestSession session;
};

}  // namespace

TEST_CASE(
    "secure update: one that is not finite is zeros of weight zero, and beyond the bound is at the bound") {
  Agreed agreed;
  privacy::MaskingSpec spec{.fraction_bits = 10, .max_abs = 1, .max_weight = 100};
  SUBCASE("64 bits") {}
  SUBCASE("32 bits") { spec.codec = protocol::Codec::kMasked32; }
  SUBCASE("all weigh the same") { spec.uniform_weight = 3; }
  const auto whole = agreed.part(spec, 1);
  CHECK_FALSE(whole.fault);
  const std::uint64_t weight = spec.uniform_weight > 0 ? 3 : 7;
  CHECK(whole.words.front() == 512 * weight);
  CHECK(whole.words.back() == 1024 * weight);
  CHECK(whole.scalars == std::vector<std::uint64_t>{weight, 14 << 16, 7});
  for (const float beyond : {std::nextafter(1.0F, 2.0F), 1e30F}) {
    CHECK(agreed.part(spec, beyond).words == whole.words);
    CHECK(agreed.part(spec, -beyond).words == agreed.part(spec, -1).words);
    CHECK_FALSE(agreed.part(spec, beyond).fault);
  }
  for (const float last :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    CAPTURE(last);
    const auto part = agreed.part(spec, last);
    CHECK(part.fault);
    CHECK(part.words == std::vector<std::uint64_t>(kSummedParameters));
    CHECK(part.scalars == std::vector<std::uint64_t>{0, 0, 0});
  }
}

TEST_CASE("secure update: where clients add noise, one that cannot be summed is noise of the usual weight") {
  Agreed agreed;
  const privacy::MaskingSpec spec{.fraction_bits = 10,
                                  .max_abs = 1,
                                  .uniform_weight = 3,
                                  .max_weight = 3,
                                  .clipping_norm = 1,
                                  .noise_multiplier = 1,
                                  .max_participations = 1};
  const Secret root{Digest{7}};
  const PrivateSum::Noise noise{&root, {RoundNumber(3), TrackId()}};
  const auto zeros = agreed.part(spec, 0, noise, 0);
  const auto diverged = agreed.part(spec, std::numeric_limits<float>::infinity(), noise);
  CHECK_FALSE(zeros.fault);
  CHECK(diverged.fault);
  CHECK(diverged.words == zeros.words);
  CHECK(diverged.words != std::vector<std::uint64_t>(kSummedParameters));
  CHECK(diverged.scalars == std::vector<std::uint64_t>{3, 0, 0});
  CHECK(zeros.scalars == diverged.scalars);
  CHECK(diverged.release == zeros.release);
}

TEST_CASE(
    "secure sum: it weighs no more than its updates may together, and that is all that can be checked") {
  const privacy::MaskingSpec spec{.codec = protocol::Codec::kMasked64, .max_weight = 200};
  const auto check = [&](const std::vector<std::uint64_t>& weights) {
    return check_weights(spec, weights, 2);
  };
  CHECK(check({260, 0, 400}));
  const auto heavy = check({260, 401});
  REQUIRE_FALSE(heavy);
  CHECK(heavy.error().code == ErrorCode::kInvalid);
  CHECK(heavy.error().message.find("has a weight of 401, but at most 400 is possible") != std::string::npos);
  CHECK_FALSE(check({100'000'060}));
  CHECK_FALSE(check({UINT64_MAX}));
  // 60 samples of an honest client and 340 of another; the sum does not show whose they are.
  CHECK(check({60 + 340}));
}

}  // namespace fedge::run
