// Compares the noise with its nominal distributions, with fixed keys. Chi-square over all values with a
// sufficient expected count, at a level of 10^-6: a correct sampler fails for one key in a million.
#include "privacy/differential/noise.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/platform/thread_pool.h"
#include "privacy/differential/skellam.h"

namespace fedge::privacy {
namespace {

Secret noise_key(std::uint8_t first) { return Secret(Digest{first}); }

// Upper quantile of chi-square by Wilson and Hilferty's approximation, at 10^-6 (4.753 standard deviations).
double quantile(double degrees) {
  const double a = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1 - a + 4.753 * std::sqrt(a), 3);
}

using Counts = std::map<std::int64_t, double>;

// Checks whether the counts fit the probabilities, which add up to 1 over all integers; rare values are
// pooled.
void check_fits(const Counts& counts, double total, const std::function<double(std::int64_t)>& probability) {
  double statistic = 0;
  double degrees = -1;
  double rest = total;
  double rest_expected = total;
  for (std::int64_t x = -4000; x <= 4000; ++x) {
    const double expected = total * probability(x);
    if (expected < 10) continue;
    const auto found = counts.find(x);
    const double seen = found == counts.end() ? 0 : found->second;
    statistic += (seen - expected) * (seen - expected) / expected;
    ++degrees;
    rest -= seen;
    rest_expected -= expected;
  }
  if (rest_expected >= 10) {
    statistic += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
    ++degrees;
  } else {
    CHECK(rest < 60);
  }
  CAPTURE(degrees);
  CHECK(degrees >= 1);
  CHECK(statistic < quantile(degrees));
}

Counts draw(std::size_t number, const std::function<std::int64_t()>& sample) {
  Counts counts;
  for (std::size_t i = 0; i < number; ++i) ++counts[sample()];
  return counts;
}

// Normalised by a sum over all relevant integers.
std::function<double(std::int64_t)> gaussian(double variance) {
  double sum = 0;
  for (std::int64_t x = -20'000; x <= 20'000; ++x)
    sum += std::exp(-static_cast<double>(x) * static_cast<double>(x) / (2 * variance));
  return [=](std::int64_t x) {
    return std::exp(-static_cast<double>(x) * static_cast<double>(x) / (2 * variance)) / sum;
  };
}

constexpr std::size_t kDraws = 200'000;

}  // namespace

TEST_CASE("noise: one key, round and stretch give one stream, others give others") {
  const Secret key = noise_key(1);
  NoiseStream first(key, 3, 5);
  NoiseStream again(key, 3, 5);
  NoiseStream round(key, 4, 5);
  NoiseStream stretch(key, 3, 6);
  NoiseStream other(noise_key(2), 3, 5);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t value = first.next();
    CHECK(again.next() == value);
    CHECK(round.next() != value);
    CHECK(stretch.next() != value);
    CHECK(other.next() != value);
  }
}

TEST_CASE("noise: uniform numbers are uniform, whatever the bound") {
  NoiseStream stream(noise_key(3), 0, 0);
  for (const std::uint64_t bound : {1ULL, 2ULL, 3ULL, 10ULL, 1000ULL}) {
    CAPTURE(bound);
    const Counts counts = draw(kDraws, [&] { return static_cast<std::int64_t>(stream.below(bound)); });
    if (bound == 1) {
      CHECK(counts.size() == 1);
      continue;
    }
    check_fits(counts, kDraws, [&](std::int64_t x) {
      return x >= 0 && x < static_cast<std::int64_t>(bound) ? 1.0 / static_cast<double>(bound) : 0.0;
    });
  }
  const Wide wide = (Wide{1} << 90) + 12345;
  std::size_t upper = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto value = stream.below(wide);
    REQUIRE(value < wide);
    upper += value >= wide / 2 ? 1 : 0;
  }
  CHECK(std::abs(static_cast<double>(upper) - 10'000) < 4.9 * std::sqrt(5'000));
}

TEST_CASE("noise: an event of probability exp of minus a ratio happens that often") {
  NoiseStream stream(noise_key(4), 0, 0);
  const std::pair<std::uint64_t, std::uint64_t> ratios[] = {{0, 1}, {1, 1000}, {1, 3},
                                                            {1, 1}, {7, 3},    {9, 2}};
  for (const auto& [numerator, denominator] : ratios) {
    const double p = std::exp(-static_cast<double>(numerator) / static_cast<double>(denominator));
    double happened = 0;
    for (std::size_t i = 0; i < kDraws; ++i)
      happened += bernoulli_exp(numerator, denominator, stream) ? 1 : 0;
    CAPTURE(p);
    const double spread = std::sqrt(kDraws * p * (1 - p));
    CHECK(std::abs(happened - kDraws * p) <= 4.9 * spread);
  }
  CHECK_FALSE(bernoulli_exp(Wide{1} << 99, 1, stream));
}

TEST_CASE("noise: discrete Laplace has the distribution that it is named after") {
  NoiseStream stream(noise_key(5), 0, 0);
  for (const std::uint64_t t : {1ULL, 2ULL, 7ULL, 40ULL}) {
    CAPTURE(t);
    const double q = std::exp(-1 / static_cast<double>(t));
    check_fits(draw(kDraws, [&] { return discrete_laplace(t, stream); }), kDraws, [&](std::int64_t x) {
      return (1 - q) / (1 + q) * std::pow(q, static_cast<double>(x < 0 ? -x : x));
    });
  }
}

TEST_CASE("noise: the discrete Gaussian has the distribution that it is named after") {
  NoiseStream stream(noise_key(6), 0, 0);
  for (const std::uint64_t variance : {1ULL, 2ULL, 3ULL, 16ULL, 100ULL, 4000ULL}) {
    CAPTURE(variance);
    check_fits(draw(kDraws, [&] { return discrete_gaussian(variance, stream); }), kDraws,
               gaussian(static_cast<double>(variance)));
  }
}

// Checks the mean, variance and fourth moment of samples against a Gaussian's, within the error of 100,000
// samples.
void check_moments(double deviation, const std::function<std::int64_t()>& sample) {
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  constexpr int kNumber = 100'000;
  for (int i = 0; i < kNumber; ++i) {
    const double x = static_cast<double>(sample()) / deviation;
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  const double root = std::sqrt(static_cast<double>(kNumber));
  CHECK(std::abs(sum) < 4.9 * root);
  CHECK(std::abs(squares - kNumber) < 4.9 * std::sqrt(2.0) * root);
  CHECK(std::abs(fourth - 3.0 * kNumber) < 4.9 * std::sqrt(96.0) * root);
}

TEST_CASE("noise: the widest discrete Gaussian has its mean, variance and fourth moment") {
  NoiseStream stream(noise_key(7), 0, 0);
  check_moments(std::sqrt(static_cast<double>(kMaxVariance)),
                [&] { return discrete_gaussian(kMaxVariance, stream); });
}

TEST_CASE("noise: Skellam has the distribution that it is named after") {
  NoiseStream stream(noise_key(8), 0, 0);
  for (const std::uint64_t variance : {1ULL, 2ULL, 9ULL, 100ULL, 500ULL}) {
    CAPTURE(variance);
    const Skellam skellam(variance);
    const auto mean = static_cast<double>(variance);
    check_fits(draw(kDraws, [&] { return skellam.draw(stream); }), kDraws, [&](std::int64_t x) {
      return std::abs(x) > 400 ? 0
                               : std::exp(-mean) * std::cyl_bessel_i(static_cast<double>(std::abs(x)), mean);
    });
  }
}

TEST_CASE("noise: the widest Skellam has its mean, variance and fourth moment") {
  NoiseStream stream(noise_key(9), 0, 0);
  const Skellam skellam(Skellam::kMaxVariance);
  check_moments(std::sqrt(static_cast<double>(Skellam::kMaxVariance)), [&] { return skellam.draw(stream); });
}

TEST_CASE("noise: a vector's noise is the same however many threads draw it, and each place has its own") {
  const Secret key = noise_key(10);
  for (const NoiseKind kind : {NoiseKind::kGaussian, NoiseKind::kSkellam}) {
    std::vector<std::int64_t> one(40'000, INT64_MAX);  // the sums wrap around
    std::vector<std::int64_t> two = one;
    std::vector<std::int64_t> other = one;
    Sequential here;
    ThreadPool threads(2);
    add_noise(one, {.key = key, .variance = 10'000, .kind = kind}, here);
    add_noise(two, {.key = key, .variance = 10'000, .kind = kind}, threads);
    add_noise(other, {.key = key, .variance = 10'000, .part = 1, .kind = kind}, here);
    CHECK(one == two);
    CHECK(one != other);
    std::size_t alike = 0;  // places where both stretches have the same noise
    for (std::size_t i = 0; i < 16'000; ++i) alike += one[i] == one[i + 16'384] ? 1U : 0U;
    CHECK(alike < 200);
  }
}

TEST_CASE(
    "noise: its key is bound to the numbers that it hides, to how much it is, to the task, and to the root") {
  const std::vector<std::int64_t> numbers = {1, -2, 3};
  const std::vector<std::int64_t> others = {1, -2, 4};
  const TaskId task{RoundNumber(3), TrackId(1)};
  const Secret key = noise_key(noise_key(1), {task, 100}, numbers);
  CHECK(key == noise_key(noise_key(1), {task, 100}, numbers));
  CHECK_FALSE(key == noise_key(noise_key(1), {task, 100}, others));
  CHECK_FALSE(key == noise_key(noise_key(2), {task, 100}, numbers));
  CHECK_FALSE(key == noise_key(noise_key(1), {{RoundNumber(4), TrackId(1)}, 100}, numbers));
  CHECK_FALSE(key == noise_key(noise_key(1), {{RoundNumber(3), TrackId(2)}, 100}, numbers));
  CHECK_FALSE(key == noise_key(noise_key(1), {task, 101}, numbers));
  CHECK_FALSE(key == noise_key(noise_key(1), {task, 100, NoiseKind::kSkellam}, numbers));
  CHECK(*noise_variance(0.1) == 1);
  CHECK(*noise_variance(3.5) == 13);
  CHECK(*noise_variance(0x1p20) == kMaxVariance);
  CHECK_FALSE(noise_variance(0x1.001p20));
  CHECK_FALSE(noise_variance(0x1.001p14, NoiseKind::kSkellam));
  CHECK_FALSE(noise_variance(std::nan("")));
}

}  // namespace fedge::privacy
