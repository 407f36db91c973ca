#include "privacy/differential/accounting/discrete_noise.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "privacy/differential/accounting/guarantee.h"
#include "privacy/differential/accounting/rdp_curves.h"
#include "tests/unit/privacy/vectors.h"

namespace fedge::privacy {
namespace {

// Probabilities of the values -reach to reach.
using Pmf = std::vector<double>;

Pmf convolve(const Pmf& a, const Pmf& b) {
  Pmf sum(a.size() + b.size() - 1, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) sum[i + j] += a[i] * b[j];
  return sum;
}

Pmf discrete_gaussian(double sigma, int reach) {
  Pmf pmf;
  double total = 0;
  for (int k = -reach; k <= reach; ++k) total += pmf.emplace_back(std::exp(-k * k / (2 * sigma * sigma)));
  for (double& p : pmf) p /= total;
  return pmf;
}

// The difference of two Poisson variables with half the variance each.
Pmf skellam(double variance, int reach) {
  Pmf poisson;
  for (int k = 0; k <= 2 * reach; ++k)
    poisson.push_back(std::exp(k * std::log(variance / 2) - variance / 2 - std::lgamma(k + 1)));
  const Pmf mirrored(poisson.rbegin(), poisson.rend());
  const Pmf both = convolve(poisson, mirrored);
  return {both.begin() + reach, both.end() - reach};
}

// Renyi divergence of a pmf from the same pmf shifted by `shift`.
double divergence(const Pmf& pmf, std::size_t shift, double order) {
  double sum = 0;
  for (std::size_t i = 0; i + shift < pmf.size(); ++i)
    if (pmf[i] > 0 && pmf[i + shift] > 0)
      sum += std::exp(order * std::log(pmf[i]) + (1 - order) * std::log(pmf[i + shift]));
  return std::log(sum) / (order - 1);
}

}  // namespace

TEST_CASE("discrete gaussian: its Renyi divergence is at most the Gaussian's") {
  for (const double sigma : {0.7, 2.0})
    for (const double order : {1.5, 2.0, 6.0}) {
      const double exact = divergence(discrete_gaussian(sigma, 40), 1, order);
      CHECK(exact <= gaussian_rdp(sigma, order) * (1 + 1e-12));
    }
  for (const auto& vector : reference_vectors("discrete_gaussian")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    const double tolerance = vector["tol_rel"].get<double>() * vector["value"].get<double>();
    const double bound =
        gaussian_rdp(params["sigma"].get<double>() / params["sensitivity"].get<double>(), params["order"]);
    CHECK(bound >= vector["value"].get<double>() - tolerance);
  }
}

TEST_CASE("distributed gaussian: the bound holds for sums that are convolved out, and is near") {
  for (const double sigma : {0.6, 1.0})
    for (const int clients : {2, 10}) {
      Pmf sum = {1};
      for (int i = 0; i < clients; ++i) sum = convolve(sum, discrete_gaussian(sigma, 12));
      for (const double order : {2.0, 5.0}) {
        const SummedGaussian noise = summed({sigma, static_cast<double>(clients)});
        const double bound = distributed_gaussian_rdp(noise, {1, 1, 1}, order);
        const double exact = divergence(sum, 1, order);
        CHECK(exact <= bound);
        if (sigma == 1.0) CHECK(relative(bound, exact) < 0.02);
      }
    }
  CHECK(relative(distributed_gaussian_tau({1, 100}), 0.000547788699060149) < 1e-12);
}

TEST_CASE("distributed gaussian: the three bounds of the theorem, each by hand where it is the least") {
  // sigma 2, tau 0.1, order 2; in units of sigma: l2 = 1/2, l1 = 3/4, d = 4.
  // 1/4 + 0.1 * 4 = 0.65; 1/4 + 2 * 3/4 * 0.1 + 0.01 * 4 = 0.44; (1/2 + 2 * 0.1)^2 = 0.49.
  CHECK(distributed_gaussian_rdp({2, 0.1}, {1, 1.5, 4}, 2) == doctest::Approx(0.44).epsilon(1e-14));
  // l1 = l2 sqrt(d) makes the second bound equal to the third. For a tau of 0.5, 1/4 + 4 tau is the least:
  // 2.25 against 1/4 + 1 + 1.
  CHECK(distributed_gaussian_rdp({2, 0.1}, {1, 4, 4}, 2) == doctest::Approx(0.49).epsilon(1e-14));
  CHECK(distributed_gaussian_rdp({2, 0.5}, {1, 4, 1}, 2) == doctest::Approx(0.75).epsilon(1e-14));
}

TEST_CASE("skellam: the bound holds for the exact distribution, and is the Gaussian's for much noise") {
  for (const double variance : {10.0, 100.0})
    for (const double order : {2.0, 8.0}) {
      const double exact = divergence(skellam(variance, 150), 1, order);
      CHECK(exact <= skellam_rdp(variance, {1, 1, 1}, order));
      CHECK(skellam_rdp(variance, {1, 1, 1}, order - 0.3) == skellam_rdp(variance, {1, 1, 1}, order));
    }
  CHECK(relative(divergence(skellam(10, 150), 1, 8), 0.3646338082061117) < 1e-7);
  CHECK(relative(skellam_rdp(1e8, {1, 1, 1}, 4), gaussian_rdp(1e4, 4)) < 1e-6);
  CHECK(relative(skellam_rdp(100, {1, 1, 1}, 16), 0.080925) < 1e-12);
}

TEST_CASE("whole-number noise: reference values") {
  for (const auto& vector : reference_vectors("distributed_dp")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    const double wanted = vector["value"];
    const double tolerance = vector["tol_rel"].get<double>() * wanted;
    if (vector["quantity"] == "tau") {
      CHECK(std::abs(distributed_gaussian_tau({params["local_sigma"], params["clients"]}) - wanted) <
            tolerance);
      continue;
    }
    double got = 0;
    const double shift = params.value("shift", 1.0);
    const GridSensitivity sensitivity{params.value("l2", shift), params.value("l1", shift),
                                      params.value("dim", 1.0)};
    if (params.contains("q"))
      got = sampled_rdp([&](double a) { return skellam_rdp(params["variance"], sensitivity, a); },
                        params["q"], params["order"]);
    else if (params.contains("variance"))
      got = skellam_rdp(params["variance"], sensitivity, params["order"]);
    else
      got = distributed_gaussian_rdp(summed({params["local_sigma"], params["clients"]}), sensitivity,
                                     params["order"]);
    CHECK(got >= wanted - tolerance);
    if (vector["direction"] == "two_sided") CHECK(got <= wanted + tolerance);
  }
}

TEST_CASE("rounding: the bounds of the norms, by hand and by reference") {
  CHECK(rounded_l2_bound(3, 16, 0) == 7);
  CHECK(rounded_sensitivity(3, 16, 0).l1 == 28);
  CHECK(rounded_sensitivity(0.5, 1e6, 0.5).dimension == 1e6);
  for (const auto& vector : reference_vectors("quantisation")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    const double got = rounded_l2_bound(params["l2_scaled"], params["dim"], params["beta"]);
    CHECK(relative(got, vector["value"]) <= vector.value("tol_rel", 0.0));
  }
}

TEST_CASE(
    "adaptive clipping: what the updates' noise becomes, and what the clipped share must have at least") {
  CHECK(relative(*update_noise_multiplier(1, 5), 1.005037815259212) < 1e-12);
  CHECK(relative(*update_noise_multiplier(2, 2), 2.309401076758503) < 1e-12);
  CHECK(!update_noise_multiplier(2, 1));
  CHECK(!update_noise_multiplier(0, 1));
  CHECK(!update_noise_multiplier(NAN, 1));
  for (const auto& vector : reference_vectors("adaptive_clipping")) {
    const auto& params = vector["params"];
    CHECK(relative(*update_noise_multiplier(params["z_total"], params["sigma_b"]), vector["value"]) < 1e-12);
  }
}

}  // namespace fedge::privacy
