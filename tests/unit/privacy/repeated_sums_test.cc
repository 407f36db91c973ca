// Measures what a coordinator learns from several sums of the same updates with the clients' noise. The
// second sum comes from another run of the same file, another round or another track, each without one
// client.
//
// The coordinator wants client 0's update and may know all others. The noise of nine clients hides the update
// in the sum with client 0; the sum without it reveals the noise of eight. The best linear estimate subtracts
// what the second noise predicts of the first: the fraction 1 - rho^2 of the variance remains, where rho is
// the correlation of the two noises. With equal noises a ninth remains: the noise of client 0 alone. With
// independent noises, all of it must remain.
//
// Power: rho is measured over kCoordinates coordinates with a standard deviation of 1 / sqrt(kCoordinates) =
// 0.005. The test misses a correlation of 0.05 once in 3.5 million times, and reports one of 0 as rarely. The
// estimate's standard deviation is thus at least sqrt(1 - 0.05^2) = 99.87 % of that assumed for epsilon.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/crypto/sha256.h"
#include "privacy/differential/noise.h"

namespace fedge::privacy {
namespace {

constexpr std::size_t kCoordinates = 40'000;
constexpr std::uint8_t kNoisyClients = 9;
constexpr std::uint64_t kShare = 1 << 20;  // variance of a client's noise

// One release of a client: its run, and the task within the run.
struct Release {
  std::uint64_t run = 1;
  TaskId task{RoundNumber(1), TrackId(0)};
};

std::vector<std::int64_t> update_of(std::uint8_t client) {
  std::vector<std::int64_t> numbers(kCoordinates);
  for (std::size_t i = 0; i < kCoordinates; ++i)
    numbers[i] = static_cast<std::int64_t>((i * 37 + client * 11) % 500);
  return numbers;
}

// Adds a client's noise to the noise of a sum: the noised numbers minus the numbers.
void add_share(std::uint8_t client, const Release& release, std::vector<double>& noise) {
  const std::vector<std::int64_t> numbers = update_of(client);
  std::vector<std::int64_t> noised = numbers;
  const Secret root = run_noise_root(Secret(Digest{client, 7}), release.run);
  const Secret key = noise_key(root, {release.task, kShare}, numbers);
  Sequential here;
  add_noise(noised, {.key = key, .variance = kShare}, here);
  for (std::size_t i = 0; i < kCoordinates; ++i) noise[i] += static_cast<double>(noised[i] - numbers[i]);
}

std::vector<double> noise_of_sum(std::uint8_t first, const Release& release) {
  std::vector<double> noise(kCoordinates);
  for (std::uint8_t client = first; client < kNoisyClients; ++client) add_share(client, release, noise);
  return noise;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The correlation between the noise of the sum with client 0 and of the sum without it.
double correlation(const Release& with, const Release& without) {
  const auto first = noise_of_sum(0, with);
  const auto second = noise_of_sum(1, without);
  return dot(first, second) / std::sqrt(dot(first, first) * dot(second, second));
}

}  // namespace

TEST_CASE("repeated sums: what a second one tells of the noise in the first is nothing") {
  const Release first;
  Release second = first;
  SUBCASE("in a second run of the same file") { second.run = 2; }
  SUBCASE("in a later round") { second.task.round = RoundNumber(2); }
  SUBCASE("on another track of the round") { second.task.track = TrackId(1); }
  CHECK(std::abs(correlation(first, second)) < 0.025);
  // The first sum contains the noise of all nine clients.
  const auto noise = noise_of_sum(0, first);
  const double variance = dot(noise, noise) / kCoordinates / kShare;
  CHECK(variance == doctest::Approx(kNoisyClients).epsilon(5 * std::sqrt(2.0 / kCoordinates)));
}

TEST_CASE("repeated sums: the test would see noise that is the same") {
  // A client that repeats an update for a restored backup would reuse its noise; SummedUpdates refuses this.
  CHECK(correlation({}, {}) == doctest::Approx(std::sqrt(8.0 / 9.0)).epsilon(0.01));
}

}  // namespace fedge::privacy
