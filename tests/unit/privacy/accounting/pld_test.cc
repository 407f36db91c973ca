#include "privacy/differential/accounting/loss/pld.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>

#include "privacy/differential/accounting/gaussian.h"
#include "privacy/differential/accounting/loss/fft.h"
#include "privacy/differential/accounting/loss/sampled_loss.h"
#include "privacy/differential/accounting/rdp_curves.h"
#include "tests/unit/privacy/vectors.h"

namespace fedge::privacy {
namespace {

// Relative excess that the accountant may have over the exact value; a result below it is an error.
constexpr double kAbove = 5e-6;

struct Anchor {
  double q;
  double sigma;
  double steps;
  double delta;
  double epsilon;
  double tolerance;  // of `epsilon` itself
};

double epsilon_of(const RepeatedStep& step, double delta) { return pld_epsilon({&step, 1}, delta); }

RepeatedStep gaussian(double q, double sigma, double steps) { return {{Noise::kGaussian, q, sigma}, steps}; }

// delta of two equal steps in one direction: averages the closed form of the second step, at the epsilon that
// the first step leaves, by Simpson's rule.
double slow_delta_of_two(const SampledGaussian& step, double epsilon, Neighbours neighbours) {
  const int intervals = 20000;
  const double s = step.noise_multiplier;
  const double from = -12 * s;
  const double width = (1 + 24 * s) / intervals;
  const auto density = [&](double x) {
    const double without = std::exp(-x * x / (2 * s * s));
    const double with =
        (1 - step.sampling_rate) * without + step.sampling_rate * std::exp(-(x - 1) * (x - 1) / (2 * s * s));
    return (neighbours == Neighbours::kRemove ? with : without) / (s * std::sqrt(2 * std::acos(-1.0)));
  };
  double sum = 0;
  for (int i = 0; i <= intervals; ++i) {
    const double x = from + i * width;
    const double loss = sampled_loss(step.sampling_rate, (2 * x - 1) / (2 * s * s));
    const double left = neighbours == Neighbours::kRemove ? epsilon - loss : epsilon + loss;
    sum += density(x) * sampled_gaussian_delta(step, left, neighbours) *
           (i == 0 || i == intervals ? 1
            : i % 2 == 1             ? 4
                                     : 2);
  }
  return sum * width / 3;
}

}  // namespace

TEST_CASE("fourier: real spectra are what the definition says, and lead back") {
  std::vector<double> values(64);
  for (std::size_t j = 0; j < values.size(); ++j) values[j] = std::sin(static_cast<double>(j * j)) + 0.1;
  const auto spectrum = real_spectrum(values);
  REQUIRE(spectrum.size() == 33);
  for (std::size_t k = 0; k < spectrum.size(); ++k) {
    std::complex<double> slow = 0;
    for (std::size_t j = 0; j < values.size(); ++j)
      slow += values[j] * std::polar(1.0, -2 * std::acos(-1.0) * static_cast<double>(j * k % 64) / 64);
    CHECK(std::abs(spectrum[k] - slow) < 1e-12);
  }
  const auto back = from_real_spectrum(spectrum);
  for (std::size_t j = 0; j < values.size(); ++j)
    CHECK(std::abs(back[j] - values[j]) < 64 * fourier_error(64));
}

TEST_CASE(
    "loss grid: P and Q keep their mass, and delta is exact at grid points and never below between them") {
  for (const Direction direction : {Direction::kRemove, Direction::kAdd})
    for (const double q : {0.02, 0.5, 1.0}) {
      const NoisyStep step{Noise::kGaussian, q, 0.9};
      const LossGrid grid = make_loss_grid(step, direction, loss_range(step, direction, 1e-15), 0.05);
      double p = grid.infinite;
      double other = 0;
      for (std::size_t j = 0; j < grid.log_masses.size(); ++j) {
        p += std::exp(grid.log_masses[j]);
        other += std::exp(grid.log_masses[j] -
                          0.05 * static_cast<double>(grid.first + static_cast<std::int64_t>(j)));
      }
      CHECK(std::abs(p - 1) < 1e-12);
      CHECK(std::abs(other - 1) < 1e-9);
      for (int i = 0; i <= 60; ++i) {
        const double epsilon = 0.0125 * i;  // every fourth value lies on the grid
        double delta = grid.infinite;
        for (std::size_t j = 0; j < grid.log_masses.size(); ++j) {
          const double loss = 0.05 * static_cast<double>(grid.first + static_cast<std::int64_t>(j));
          if (loss > epsilon) delta -= std::exp(grid.log_masses[j]) * std::expm1(epsilon - loss);
        }
        const auto neighbours = direction == Direction::kRemove ? Neighbours::kRemove : Neighbours::kAdd;
        const double exact = sampled_gaussian_delta({q, 0.9}, epsilon, neighbours);
        CHECK(delta >= exact - 1e-13);
        if (i % 4 == 0) CHECK(delta <= exact + 1e-12);
      }
    }
}

TEST_CASE("pld: the anchor values, from above and closely") {
  const Anchor anchors[] = {
      {0.04, 1.5, 2249, 1e-5, 6.76704, 1e-5},        {256.0 / 60000, 1.1, 14063, 1e-5, 2.3816897261, 5e-7},
      {0.01, 0.7, 120, 1e-5, 2.461238, 1e-6},        {0.01, 0.35, 120, 1e-5, 18.6977405638, 5e-7},
      {0.001, 0.8, 10000, 1e-6, 0.9471956873, 5e-7}, {0.01, 1.0, 1000, 1e-5, 1.828237, 1e-6},
      {0.2, 1.0, 50, 1e-3, 7.0657694056, 5e-7},      {1, 10, 100, 1e-5, 4.3771780957, 5e-7}};
  for (const Anchor& anchor : anchors) {
    CAPTURE(anchor.q);
    CAPTURE(anchor.sigma);
    const double got = epsilon_of(gaussian(anchor.q, anchor.sigma, anchor.steps), anchor.delta);
    CHECK(got >= anchor.epsilon * (1 - anchor.tolerance));
    CHECK(got <= anchor.epsilon * (1 + anchor.tolerance + kAbove));
  }
}

TEST_CASE("pld: reference values of epsilon and delta, from above and closely") {
  for (const char* category : {"pld_epsilon", "pld_delta", "laplace"}) {
    for (const auto& vector : reference_vectors(category)) {
      CAPTURE(vector["id"].get<std::string>());
      const auto& params = vector["params"];
      const std::string adjacency = params.value("adjacency", "");
      if (adjacency == "replace" || vector["quantity"] == "rdp") continue;  // other tests cover these
      const double wanted = vector["value"];
      const double tolerance = vector.contains("tol_abs") ? vector["tol_abs"].get<double>()
                                                          : vector["tol_rel"].get<double>() * wanted;
      const RepeatedStep step =
          params.contains("q") && params.contains("sigma")
              ? gaussian(params["q"], params["sigma"], params["steps"])
              : RepeatedStep{{Noise::kLaplace, params["q"], params["b_over_sensitivity"]}, 1};
      double got = 0;
      if (vector["quantity"] == "epsilon")
        got = epsilon_of(step, params["delta"]);
      else if (adjacency == "add_or_remove_one")
        got = pld_delta({&step, 1}, params["epsilon"]);
      else
        got = pld_delta({&step, 1}, params["epsilon"],
                        adjacency == "add" ? Direction::kAdd : Direction::kRemove);
      CHECK(got >= wanted - tolerance);
      CHECK(got <= wanted * (1 + kAbove) + tolerance);
    }
  }
}

TEST_CASE("pld: two steps are what an integral over the first says, in both directions") {
  for (const SampledGaussian& step : {SampledGaussian{0.1, 1}, {0.5, 0.7}})
    for (const double epsilon : {0.1, 0.8, 2.5})
      for (const bool remove : {true, false}) {
        CAPTURE(epsilon);
        const RepeatedStep twice = gaussian(step.sampling_rate, step.noise_multiplier, 2);
        const double slow = slow_delta_of_two(step, epsilon, remove ? Neighbours::kRemove : Neighbours::kAdd);
        const double got = pld_delta({&twice, 1}, epsilon, remove ? Direction::kRemove : Direction::kAdd);
        CHECK(got >= slow * (1 - 1e-9));
        CHECK(got <= slow * (1 + 1e-6) + 1e-14);
      }
}

TEST_CASE("pld: without sampling it is the Gaussian's closed form, down to tiny deltas") {
  for (const double steps : {1.0, 7.0, 400.0})
    for (const double delta : {0.1, 1e-5, 1e-12, 1e-30}) {
      const double exact = sampled_gaussian_epsilon({1, 3 / std::sqrt(steps)}, delta);
      const double got = epsilon_of(gaussian(1, 3, steps), delta);
      CAPTURE(steps);
      CAPTURE(delta);
      CHECK(got >= exact * (1 - 1e-12));
      CHECK(got <= exact * (1 + 1e-6));
    }
}

TEST_CASE("pld: one step is the closed form") {
  for (const double q : {0.003, 0.2})
    for (const double sigma : {0.6, 2.0})
      for (const double delta : {1e-3, 1e-7}) {
        const double exact = sampled_gaussian_epsilon({q, sigma}, delta);
        if (exact < 1e-3) continue;
        const double got = epsilon_of(gaussian(q, sigma, 1), delta);
        CHECK(got >= exact * (1 - 1e-12));
        CHECK(got <= exact * (1 + 1e-5));
      }
}

TEST_CASE("pld: a rate of 1 in 20,000, and losses of a million, are neither lost nor far too large") {
  // Rare large losses beside frequent tiny ones: Chernoff's bound gives 4.7, the correct result is 0.027.
  for (const double delta : {1e-8, 1e-11}) {
    const double exact = sampled_gaussian_epsilon({4.37897e-05, 0.619508}, delta);
    const double got = epsilon_of(gaussian(4.37897e-05, 0.619508, 1), delta);
    CHECK(got >= exact * (1 - 1e-12));
    CHECK(got <= exact * 1.01);
  }
  for (const double steps : {7364.0, 90000.0}) {
    const double exact = sampled_gaussian_epsilon({1, 0.197642 / std::sqrt(steps)}, 2.3e-13);
    const double got = epsilon_of(gaussian(1, 0.197642, steps), 2.3e-13);
    CHECK(got >= exact * (1 - 1e-12));
    CHECK(got <= exact * 1.01);
  }
}

TEST_CASE("pld: a composition that grows is as near to the anchor values as one from nothing") {
  GrowingLoss growing;
  const RepeatedStep fifty = gaussian(0.2, 1, 50);
  CHECK(growing.epsilon(fifty, 1e-3) >= 7.065769);
  CHECK(growing.epsilon(fifty, 1e-3) <= 7.065769 * (1 + 1e-6));
  const RepeatedStep many = gaussian(0.01, 0.7, 120);
  CHECK(growing.epsilon(many, 1e-5) >= 2.4612375);
  CHECK(growing.epsilon(many, 1e-5) <= 2.461238 * (1 + 1e-6));
}

TEST_CASE("pld: asked after every step, it says what a composition from nothing does, whoever asked before") {
  GrowingLoss growing;
  double before = 0;
  for (const double count : {1, 2, 7, 8, 9, 20}) {
    const RepeatedStep steps = gaussian(0.1, 1.5, count);
    const double epsilon = growing.epsilon(steps, 1e-5);
    CHECK(epsilon > before);
    CHECK(relative(epsilon, epsilon_of(steps, 1e-5)) < 4e-7);
    before = epsilon;
  }
  CHECK(relative(growing.epsilon(gaussian(0.1, 3, 20), 1e-5), epsilon_of(gaussian(0.1, 3, 20), 1e-5)) < 4e-7);
  GrowingLoss fresh;
  CHECK(fresh.epsilon(gaussian(0.1, 1.5, 20), 1e-5) == before);
  // If one window does not fit all counts, the composition starts from scratch.
  for (const double count : {1, 3})
    CHECK(relative(growing.epsilon(gaussian(0.01, 0.6, count), 1e-12),
                   epsilon_of(gaussian(0.01, 0.6, count), 1e-12)) < 4e-7);
}

TEST_CASE("sampled loss: there and back, for tiny rates and rates close to 1") {
  for (const double q : {1e-9, 0.3, 1 - 1e-12, 1.0})
    for (const double loss : {-30.0, -1.0, -1e-6, 0.0, 1e-6, 2.0, 50.0, 5000.0}) {
      const double there = sampled_loss(q, loss);
      CHECK(std::isfinite(there));
      // The loss is too flat to be inverted.
      if (loss < -1 && q < 1) continue;
      if (std::abs(there) < 1e-13) continue;
      CHECK(unsampled_loss(q, there) == doctest::Approx(loss).epsilon(1e-6));
    }
}

TEST_CASE("pld: Laplace noise composes to no more than its pure guarantee, and by Renyi's curve") {
  for (const double steps : {1.0, 3.0, 200.0})
    for (const double q : {0.05, 1.0}) {
      const RepeatedStep step{{Noise::kLaplace, q, 2}, steps};
      const double got = epsilon_of(step, 1e-6);
      CHECK(got <= steps * sampled_loss(q, 0.5) * (1 + 1e-6));
      if (q < 1) continue;
      const RdpCurve curve = [&](double order) { return steps * laplace_rdp(2, order); };
      CHECK(got <= best_rdp_epsilon(curve, 1e-6).value * (1 + 1e-6));
    }
}

TEST_CASE(
    "pld: different steps together cost between either's share and their sum, equal ones as one entry") {
  const RepeatedStep halves[] = {gaussian(0.02, 1.1, 300), gaussian(0.02, 1.1, 500)};
  const double both = pld_epsilon(halves, 1e-6);
  const double together = epsilon_of(gaussian(0.02, 1.1, 800), 1e-6);
  CHECK(both == doctest::Approx(together).epsilon(1e-6));
  const RepeatedStep mixed[] = {gaussian(0.02, 1.1, 300), {{Noise::kLaplace, 1, 5}, 2}};
  const double mixture = pld_epsilon(mixed, 1e-6);
  CHECK(mixture > epsilon_of(mixed[0], 1e-6));
  CHECK(mixture < epsilon_of(mixed[0], 5e-7) + epsilon_of(mixed[1], 5e-7));
}

}  // namespace fedge::privacy
