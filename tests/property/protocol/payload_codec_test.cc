// Payload codecs on random updates: a receiver decodes what the encoder announced, and the bounds of the
// papers hold. Seeds are fixed, so that averages are the same in every run.
#include "protocol/codecs/payload_codec.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "protocol/codecs/selection.h"
#include "tests/support/payloads.h"

namespace fedge::protocol {
namespace {

std::vector<float> normal_values(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(0.01 * rng.normal());
  return values;
}

double squared_norm(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double sum, float value) {
    return sum + static_cast<double>(value) * static_cast<double>(value);
  });
}

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return sum;
}

std::vector<Compression> all_compressions() {
  std::vector<Compression> all;
  for (const bool zstd : {false, true}) {
    for (const Codec codec : {Codec::kFloat32, Codec::kFloat16, Codec::kBfloat16, Codec::kInt8})
      all.push_back({.codec = codec, .zstd = zstd});
    for (const std::uint32_t levels : {1U, 3U, 4U, 15U, 100U, 127U})
      all.push_back({.codec = Codec::kQsgd, .zstd = zstd, .levels = levels});
    for (const double fraction : {1e-4, 0.02, 0.2, 1.0})
      for (const bool random : {false, true})
        all.push_back({.codec = Codec::kSparse, .zstd = zstd, .fraction = fraction, .random = random});
  }
  return all;
}

// The means, over many seeds, of each decoded value and of the squared distance to all values.
struct Averages {
  std::vector<double> value;
  double squared_error = 0;
};

Averages average(const Compression& compression, const std::vector<float>& values, int trials) {
  Averages result{.value = std::vector<double>(values.size())};
  std::vector<float> seen(values.size());
  for (int trial = 0; trial < trials; ++trial) {
    encode_payload(compression, values, seen, Rng(static_cast<std::uint64_t>(trial)));
    for (std::size_t i = 0; i < seen.size(); ++i) result.value[i] += static_cast<double>(seen[i]) / trials;
    result.squared_error += squared_distance(values, seen) / trials;
  }
  return result;
}

}  // namespace

TEST_CASE("payload: the decoder gives the encoder's values to the bit, however they are read") {
  Rng rng(11);
  for (const Compression& compression : all_compressions())
    for (const std::size_t size : {std::size_t{1}, std::size_t{255}, std::size_t{513}, std::size_t{4097},
                                   std::size_t{65'536}, std::size_t{70'001}}) {
      CAPTURE(static_cast<int>(compression.codec));
      CAPTURE(compression.levels);
      CAPTURE(compression.fraction);
      CAPTURE(compression.zstd);
      CAPTURE(size);
      const std::vector<float> values = normal_values(size, rng.next_u64());
      std::vector<float> seen(size);
      const Rng draws(rng.next_u64());
      const EncodedPayload payload = encode_payload(compression, values, seen, draws);
      for (const std::size_t step : {size, std::size_t{1000}, 1 + rng.below(size)}) {
        const auto values_back = decoded(payload, size, step);
        REQUIRE_MESSAGE(values_back, refusal(payload, size));
        REQUIRE(same_bits(*values_back, seen));
      }
      std::vector<float> in_place = values;
      const EncodedPayload again = encode_payload(compression, in_place, in_place, draws);
      REQUIRE(again.bytes == payload.bytes);
      REQUIRE(same_bits(in_place, seen));
    }
}

TEST_CASE("payload: values of every size survive, and none becomes infinite or NaN") {
  Rng rng(12);
  for (const Compression& compression : all_compressions()) {
    std::vector<float> values(3000);
    for (float& value : values) {
      do value = std::bit_cast<float>(rng.next_u32());
      while (!std::isfinite(value));
    }
    values[0] = std::numeric_limits<float>::max();
    values[1] = -std::numeric_limits<float>::max();
    for (std::size_t i = 1024; i < 1536; ++i) values[i] = std::bit_cast<float>(rng.next_u32() & 0x807fffffU);
    std::vector<float> seen(values.size());
    const EncodedPayload payload = encode_payload(compression, values, seen, Rng(1));
    REQUIRE(all_finite(seen));
    const auto values_back = decoded(payload, values.size());
    REQUIRE_MESSAGE(values_back, refusal(payload, values.size()));
    REQUIRE(same_bits(*values_back, seen));
    // A norm or scale of these values would be denormal.
    const std::vector<float> tiny = {1e-40F, -1e-42F, 0.0F};
    const EncodedPayload small = encode_payload(compression, tiny, std::span(seen).first(3), Rng(1));
    REQUIRE_MESSAGE(decoded(small, 3), refusal(small, 3));
    REQUIRE(same_bits(*decoded(small, 3), std::span(seen).first(3)));
  }
}

TEST_CASE("payload: float16 is within half a unit of the last place of eleven bits") {
  const std::vector<float> values = normal_values(10'000, 3);
  std::vector<float> seen(values.size());
  encode_payload({.codec = Codec::kFloat16}, values, seen, Rng(1));
  for (std::size_t i = 0; i < values.size(); ++i)
    REQUIRE(std::abs(seen[i] - values[i]) <= std::max(std::abs(values[i]) * 0x1p-11F, 0x1p-25F));
}

TEST_CASE("payload: int8 and QSGD give a neighbouring level") {
  const std::vector<float> values = normal_values(10'000, 4);
  std::vector<float> seen(values.size());
  encode_payload({.codec = Codec::kInt8}, values, seen, Rng(1));
  for (std::size_t first = 0; first < values.size(); first += 256) {
    const auto block = std::span(values).subspan(first, std::min<std::size_t>(256, values.size() - first));
    float max = 0;
    for (const float value : block) max = std::max(max, std::abs(value));
    for (std::size_t i = 0; i < block.size(); ++i)
      REQUIRE(std::abs(seen[first + i] - block[i]) <= max / 127.0F * 1.0001F);
  }
  encode_payload({.codec = Codec::kQsgd, .levels = 15}, values, seen, Rng(1));
  for (std::size_t first = 0; first < values.size(); first += 512) {
    const auto bucket = std::span(values).subspan(first, std::min<std::size_t>(512, values.size() - first));
    const double step = std::sqrt(squared_norm(bucket)) / 15.0;
    for (std::size_t i = 0; i < bucket.size(); ++i)
      REQUIRE(std::abs(static_cast<double>(seen[first + i]) - static_cast<double>(bucket[i])) <=
              step * 1.0001);
  }
}

TEST_CASE("payload: int8, QSGD and random-k are unbiased: averages err no more than their variance says") {
  constexpr int kTrials = 4000;
  const std::vector<float> values = normal_values(600, 5);
  for (const Compression& compression :
       {Compression{.codec = Codec::kInt8}, Compression{.codec = Codec::kQsgd, .levels = 1},
        Compression{.codec = Codec::kQsgd, .levels = 15},
        Compression{.codec = Codec::kSparse, .fraction = 0.1, .random = true}}) {
    CAPTURE(static_cast<int>(compression.codec));
    const Averages averages = average(compression, values, kTrials);
    double error = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double bias = averages.value[i] - static_cast<double>(values[i]);
      error += bias * bias;
    }
    // The squared error of the averages is variance / trials for an unbiased codec.
    CHECK(error < 1.3 * averages.squared_error / kTrials);
  }
}

TEST_CASE("QSGD: for small s the levels beside a value come as often as its place between them says") {
  constexpr int kTrials = 20'000;
  for (const std::uint32_t levels : {1U, 2U, 3U}) {
    const std::vector<float> values = {0.6F, -0.8F};
    std::vector<int> counts(2 * levels + 1);
    std::vector<float> seen(2);
    for (int trial = 0; trial < kTrials; ++trial) {
      encode_payload({.codec = Codec::kQsgd, .levels = levels}, values, seen,
                     Rng(static_cast<std::uint64_t>(trial)));
      ++counts[static_cast<std::size_t>(std::lround(seen[0] * static_cast<float>(levels)))];
    }
    const double exact = 0.6 * levels;
    const auto lower = static_cast<std::size_t>(exact);
    const double up = exact - static_cast<double>(lower);
    const double sigma = std::sqrt(up * (1 - up) * kTrials);
    CHECK(counts[lower] + counts[lower + 1] == kTrials);
    CHECK(std::abs(counts[lower + 1] - up * kTrials) < 4 * sigma);
  }
}

TEST_CASE("QSGD: the mean squared error is within min(d/s^2, sqrt(d)/s) of the squared norm") {
  constexpr std::size_t d = 512;
  constexpr int kTrials = 300;
  for (const std::uint32_t levels : {1U, 4U, 15U, 40U, 127U})
    for (const bool equal : {false, true}) {
      CAPTURE(levels);
      const std::vector<float> values = equal ? std::vector<float>(d, 0.01F) : normal_values(d, 6);
      const double norm = squared_norm(values);
      const double s = levels;
      // The exact expected squared error: a value between two levels is rounded to one of them at random.
      double expected = 0;
      for (const float value : values) {
        const double r = s * std::abs(static_cast<double>(value)) / std::sqrt(norm);
        expected += (r - std::floor(r)) * (1 - (r - std::floor(r))) * norm / (s * s);
      }
      const double bound = std::min(d / (s * s), std::sqrt(d) / s) * norm;
      const double measured =
          average({.codec = Codec::kQsgd, .levels = levels}, values, kTrials).squared_error;
      CHECK(expected <= bound);
      CHECK(measured == doctest::Approx(expected).epsilon(0.05));
      CHECK(measured <= bound);
    }
}

TEST_CASE("top-k: what is left out has at most (1 - k/d) of the squared norm") {
  for (const double fraction : {0.001, 0.01, 0.1, 0.5, 1.0})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const std::size_t d = 1000 + 100 * seed;
      const std::vector<float> values =
          seed == 0 ? std::vector<float>(d, 1.0F) : normal_values(d, seed);  // equal for equal values
      std::vector<float> seen(d);
      encode_payload({.codec = Codec::kSparse, .fraction = fraction}, values, seen, Rng(seed));
      const double k = static_cast<double>(kept_values(fraction, d));
      CHECK(squared_distance(values, seen) <=
            (1.0 - k / static_cast<double>(d)) * squared_norm(values) * (1 + 1e-12));
      CHECK(std::count_if(seen.begin(), seen.end(), [](float value) { return value != 0; }) ==
            static_cast<std::ptrdiff_t>(k));
    }
}

TEST_CASE("error feedback: what was sent and the last error are exactly the sum of the updates") {
  constexpr std::size_t d = 2000;
  for (const Codec codec : {Codec::kSparse, Codec::kBfloat16}) {
    CAPTURE(static_cast<int>(codec));
    Rng rng(8);
    std::vector<float> error(d);
    std::vector<double> updates(d), sent(d);
    for (std::uint64_t round = 0; round < 50; ++round) {
      std::vector<float> update(d);
      for (std::size_t i = 0; i < d; ++i) {
        update[i] = static_cast<float>(rng.below(2001)) - 1000.0F;  // integers: all sums are exact
        updates[i] += static_cast<double>(update[i]);
      }
      const EncodedPayload payload =
          encode_with_feedback({.codec = codec, .fraction = 0.05}, update, error, rng.fork("round", round));
      const auto received = decoded(payload, d);
      REQUIRE(received);
      REQUIRE(same_bits(*received, update));
      for (std::size_t i = 0; i < d; ++i) sent[i] += static_cast<double>((*received)[i]);
    }
    CHECK(squared_norm(error) > 0);
    for (std::size_t i = 0; i < d; ++i) REQUIRE(sent[i] + static_cast<double>(error[i]) == updates[i]);
  }
}

}  // namespace fedge::protocol
