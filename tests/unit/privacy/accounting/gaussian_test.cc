#include "privacy/differential/accounting/gaussian.h"

#include <doctest/doctest.h>

#include <cmath>

#include "privacy/differential/accounting/numeric/normal.h"
#include "privacy/differential/accounting/numeric/search.h"
#include "tests/unit/privacy/vectors.h"

namespace fedge::privacy {
namespace {

// One release without sampling.
double delta_of(double noise_multiplier, double epsilon) {
  return sampled_gaussian_delta({1, noise_multiplier}, epsilon);
}
double epsilon_of_gaussian(double noise_multiplier, double delta) {
  return sampled_gaussian_epsilon({1, noise_multiplier}, delta);
}
double noise_multiplier_of(double epsilon, double delta) {
  return least_argument([&](double sigma) { return sigma > 0 && delta_of(sigma, epsilon) <= delta; });
}

}  // namespace

TEST_CASE("normal: far tails and short intervals keep their relative precision") {
  // 30-digit values: Pr[Z > 10], log Pr[Z <= -10], log Pr[Z <= -30], log Pr[Z <= -100].
  CHECK(relative(normal_above(10), 7.61985302416052606597e-24) < 1e-13);
  CHECK(relative(log_normal_below(-10), -53.2312851505124705) < 1e-13);
  CHECK(relative(log_normal_below(-30), -454.321243956343502) < 1e-13);
  CHECK(relative(log_normal_below(-100), -5005.52420869374115) < 1e-13);
  CHECK(log_normal_below(8.0) == doctest::Approx(-normal_above(8.0)).epsilon(1e-12));
  // Many short intervals add up to a long one.
  double sum = 0;
  for (int i = 0; i < 4000; ++i) sum += normal_between(-3 + 0.0025 * i, -3 + 0.0025 * (i + 1));
  CHECK(relative(sum, normal_between(-3, 7)) < 1e-12);
  CHECK(normal_between(-INFINITY, INFINITY) == 1);
  CHECK(normal_between(INFINITY, INFINITY) == 0);
}

TEST_CASE("gaussian: delta, epsilon and noise multiplier of one release, by published values") {
  CHECK(relative(noise_multiplier_of(1, 1e-5), 3.730631634815942) < 1e-10);
  CHECK(relative(noise_multiplier_of(2.25, 4.0834087e-4), std::sqrt(2.0)) < 1e-9);
  CHECK(relative(epsilon_of_gaussian(1, 1e-5), 4.377178095681225) < 1e-10);
  CHECK(relative(delta_of(1, 2), 0.020923635821113732) < 1e-12);
  // 100 releases with ten times the noise equal one release.
  CHECK(epsilon_of_gaussian(10 / std::sqrt(100.0), 1e-5) == epsilon_of_gaussian(1, 1e-5));
  // e^epsilon alone overflows a double here.
  const double delta = delta_of(0.02, 1000);
  CHECK(delta > 0);
  CHECK(delta < 1);
  CHECK(std::isfinite(epsilon_of_gaussian(0.01, 1e-6)));
}

TEST_CASE("gaussian: reference values") {
  for (const auto& vector : reference_vectors("gaussian")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    if (params.contains("orders")) continue;  // covered by rdp_test.cc
    const double wanted = vector["value"];
    double got = 0;
    if (vector["quantity"] == "delta")
      got = delta_of(params["sigma_over_sensitivity"], params["epsilon"]);
    else if (vector["quantity"] == "sigma")
      got = noise_multiplier_of(params["epsilon"], params["delta"]);
    else
      got = epsilon_of_gaussian(params["sigma"].get<double>() / std::sqrt(params["steps"].get<double>()),
                                params["delta"]);
    CHECK(relative(got, wanted) < vector["tol_rel"].get<double>());
  }
}

TEST_CASE("sampled gaussian: one step's delta in every direction, by published values") {
  CHECK(relative(sampled_gaussian_delta({0.8, 1}, 1, Neighbours::kAdd), 0.0231362104090899) < 1e-12);
  CHECK(relative(sampled_gaussian_delta({0.3, 1}, 2, Neighbours::kRemove), 0.0003341102928869332) < 1e-12);
  CHECK(relative(sampled_gaussian_delta({0.8, 2}, 1, Neighbours::kReplace), 0.05808665654484252) < 1e-12);
  for (const auto& vector : reference_vectors("pld_delta")) {
    const auto& params = vector["params"];
    if (params["steps"] != 1) continue;  // covered by pld_test.cc
    CAPTURE(vector["id"].get<std::string>());
    const std::string adjacency = params["adjacency"];
    const Neighbours neighbours = adjacency == "add"      ? Neighbours::kAdd
                                  : adjacency == "remove" ? Neighbours::kRemove
                                                          : Neighbours::kReplace;
    const double got = sampled_gaussian_delta({params["q"], params["sigma"]}, params["epsilon"], neighbours);
    CHECK(relative(got, vector["value"]) < vector["tol_rel"].get<double>());
  }
}

TEST_CASE(
    "sampled gaussian: everybody sampled is the Gaussian, nobody costs nothing, no noise has no bound") {
  for (const double epsilon : {0.0, 0.1, 1.0, 5.0})
    for (const double sigma : {0.5, 1.0, 4.0}) {
      const double plain = delta_of(sigma, epsilon);
      CHECK(sampled_gaussian_delta({1, sigma}, epsilon, Neighbours::kRemove) ==
            doctest::Approx(plain).epsilon(1e-11));
      CHECK(sampled_gaussian_delta({1, sigma}, epsilon, Neighbours::kAdd) ==
            doctest::Approx(plain).epsilon(1e-11));
      CHECK(sampled_gaussian_delta({0, sigma}, epsilon) == 0);
    }
  CHECK(std::isinf(sampled_gaussian_epsilon({0.01, 0}, 1e-5)));
  CHECK(sampled_gaussian_epsilon({0, 1}, 1e-5) == 0);
}

TEST_CASE("sampled gaussian: the least noise for one step, by a published value") {
  const SampledGaussian step{0.01, 0.6737928924603013};
  CHECK(relative(sampled_gaussian_epsilon(step, 1e-5), 1) < 1e-9);
}

}  // namespace fedge::privacy
