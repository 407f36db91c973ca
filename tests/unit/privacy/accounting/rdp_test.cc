#include "privacy/differential/accounting/rdp.h"

#include <doctest/doctest.h>

#include <cmath>

#include "privacy/differential/accounting/rdp_curves.h"
#include "tests/unit/privacy/vectors.h"

namespace fedge::privacy {
namespace {

RdpCurve repeated(const SampledGaussian& step, double times) {
  return [=](double order) { return times * sampled_gaussian_rdp(step, order); };
}

std::vector<double> tenths_and(std::initializer_list<double> more, int from, int to) {
  std::vector<double> orders;
  for (int tenth = 11; tenth <= 109; ++tenth) orders.push_back(tenth / 10.0);
  for (int order = from; order <= to; ++order) orders.push_back(order);
  orders.insert(orders.end(), more.begin(), more.end());
  return orders;
}

// The grids of orders that libraries use, by their names in the vectors.
std::vector<double> orders_of(const std::string& name) {
  if (name == "dp_accounting_default") return tenths_and({128, 256, 512, 1024}, 11, 63);
  if (name == "opacus_default") return tenths_and({}, 12, 63);
  std::vector<double> orders = {1.25, 1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 4.5};
  for (int order = 5; order < 64; ++order) orders.push_back(order);
  orders.insert(orders.end(), {128, 256, 512});
  return orders;
}

// The definition (1/(a-1)) log E[((1-q) + q e^((2x-1)/2s^2))^a], x ~ N(0, s^2), by Simpson's rule in long
// double.
double slow_rdp(long double q, long double s, long double a) {
  const int intervals = 40000;
  const long double from = -20 * s;
  const long double step = (a + 40 * s) / intervals;
  long double sum = 0;
  for (int i = 0; i <= intervals; ++i) {
    const long double x = from + i * step;
    const long double ratio = 1 - q + q * std::exp((2 * x - 1) / (2 * s * s));
    const long double value = std::pow(ratio, a) * std::exp(-x * x / (2 * s * s));
    sum += value * (i == 0 || i == intervals ? 1 : i % 2 == 1 ? 4 : 2);
  }
  const long double pi = std::acos(-1.0L);
  return static_cast<double>(std::log(sum * step / 3 / (s * std::sqrt(2 * pi))) / (a - 1));
}

}  // namespace

TEST_CASE("rdp: the sampled Gaussian's curve is the integral that defines it, at whole orders and between") {
  for (const double q : {0.01, 0.1, 0.7})
    for (const double s : {0.7, 1.0, 3.0})
      for (const double a : {1.1, 1.5, 2.0, 2.5, 3.0, 7.3, 12.0, 20.0}) {
        CAPTURE(q);
        CAPTURE(s);
        CAPTURE(a);
        CHECK(relative(sampled_gaussian_rdp({q, s}, a), slow_rdp(q, s, a)) < 1e-8);
      }
  // Fractional orders keep the binomial coefficients' signs: without them this is 6.70579741e-04.
  CHECK(relative(50 * sampled_gaussian_rdp({0.01, 2.5}, 1.5), 6.50070897e-04) < 1e-8);
}

TEST_CASE("rdp: the curve never falls, nor does it jump at whole orders") {
  for (const SampledGaussian& step :
       {SampledGaussian{0.01, 1}, {0.3, 0.5}, {1e-4, 0.6}, {0.9, 5}, {0.05, 0.02}}) {
    double before = 0;
    for (double order = 1.05; order < 40; order += 0.35) {
      const double r = sampled_gaussian_rdp(step, order);
      CHECK(r >= before);
      CHECK(r <= gaussian_rdp(step.noise_multiplier, order) * (1 + 1e-12));
      before = r;
    }
    if (step.noise_multiplier > 0.1)
      CHECK(relative(sampled_gaussian_rdp(step, 5), sampled_gaussian_rdp(step, 5 + 1e-9)) < 1e-6);
  }
}

TEST_CASE("rdp: reference values of single orders") {
  for (const auto& vector : reference_vectors("rdp_order")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    const double got =
        params["steps"].get<double>() * sampled_gaussian_rdp({params["q"], params["sigma"]}, params["order"]);
    CHECK(relative(got, vector["value"]) < 1e-9);
  }
}

TEST_CASE("rdp: epsilon on the grids of orders of other libraries, and over all orders") {
  CHECK(relative(best_rdp_epsilon(repeated({0.04, 1.5}, 2250), 1e-5, orders_of("opacus_default")).value,
                 7.32911117143) < 1e-9);
  CHECK(relative(best_rdp_epsilon(repeated({0.001, 0.8}, 10000), 1e-6).value, 1.7036252777183913) < 1e-8);
  CHECK(relative(best_rdp_epsilon(repeated({0.2, 1}, 50), 1e-3).value, 8.247065552988591) < 1e-8);
  CHECK(best_rdp_epsilon(repeated({256.0 / 60000, 1.1}, 14063), 1e-5).value ==
        doctest::Approx(2.59664).epsilon(1e-5));
  CHECK(best_rdp_epsilon(repeated({0.01, 1}, 1000), 1e-5).value == doctest::Approx(2.10137).epsilon(1e-4));
  for (const auto& vector : reference_vectors("rdp_epsilon")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    const RdpCurve curve = repeated({params["q"], params["sigma"]}, params["steps"]);
    const std::string orders = params["orders"];
    const RdpBound best = orders == "all real orders > 1"
                              ? best_rdp_epsilon(curve, params["delta"])
                              : best_rdp_epsilon(curve, params["delta"], orders_of(orders));
    CHECK(relative(best.value, vector["value"]) < vector["tol_rel"].get<double>());
    CHECK(relative(best.order, params["best_order"]) < 1e-3);
  }
}

TEST_CASE("rdp: over all orders never more than on a grid, and delta is the inverse of epsilon") {
  for (const double q : {0.001, 0.05, 1.0})
    for (const double sigma : {0.5, 1.0, 4.0})
      for (const double delta : {1e-9, 1e-5, 1e-2}) {
        const RdpCurve curve = repeated({q, sigma}, 100);
        const double epsilon = best_rdp_epsilon(curve, delta).value;
        CHECK(epsilon <= best_rdp_epsilon(curve, delta, recommended_orders()).value);
        if (epsilon > 0) CHECK(relative(best_rdp_delta(curve, epsilon).value, delta) < 1e-4);
      }
}

TEST_CASE("rdp: conversion of one order, by hand and by reference") {
  CHECK(relative(rdp_epsilon(2, 1, 1e-5), 1 + std::log(0.5) - std::log(2e-5)) < 1e-14);
  CHECK(rdp_epsilon(2, 1e-12, 1e-5) == 0);
  CHECK(relative(rdp_delta(2, 1, rdp_epsilon(2, 1, 1e-5)), 1e-5) < 1e-12);
  CHECK(rdp_delta(2, INFINITY, 3) == 1);
  for (const auto& vector : reference_vectors("conversion")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    const double got = rdp_epsilon(params["order"], params["rdp"], params["delta"]);
    CHECK(relative(got, vector["value"]) < 1e-12);
  }
}

TEST_CASE("rdp: the Gaussian's epsilon over fine orders") {
  std::vector<double> orders;
  for (int i = 1001; i <= 100000; i += 1) orders.push_back(i / 1000.0);
  const RdpCurve curve = [](double order) { return gaussian_rdp(4.530877117, order); };
  CHECK(std::abs(best_rdp_epsilon(curve, 1e-6, orders).value - 1.000000000268121) < 1e-6);
  CHECK(std::abs(best_rdp_epsilon(curve, 1e-6).value - 1.000000000268121) < 1e-6);
}

TEST_CASE("rdp: Laplace noise, also far beyond what e to the power of it can be") {
  CHECK(relative(laplace_rdp(1, 2), 0.6191236299985928) < 1e-13);
  CHECK(relative(laplace_rdp(1e-3, 2), 1000 + std::log(2.0 / 3)) < 1e-12);
  // With much noise the result approaches a / (2 b^2).
  CHECK(relative(laplace_rdp(1e4, 3), 3 / (2 * 1e8)) < 1e-3);
  for (const auto& vector : reference_vectors("laplace")) {
    if (vector["quantity"] != "rdp") continue;  // pld_test.cc covers the others
    const auto& params = vector["params"];
    CHECK(relative(laplace_rdp(1 / params["epsilon_pure"].get<double>(), params["order"]), vector["value"]) <
          1e-10);
  }
}

TEST_CASE("rdp: sampling amplifies any curve, and never below what is exact for the Gaussian") {
  const RdpCurve gaussian = [](double order) { return gaussian_rdp(1.3, order); };
  for (const double q : {0.001, 0.1, 0.6})
    for (const double order : {2.0, 3.0, 8.0, 30.0}) {
      const double bound = sampled_rdp(gaussian, q, order);
      CHECK(bound >= sampled_gaussian_rdp({q, 1.3}, order) * (1 - 1e-12));
      CHECK(sampled_rdp(gaussian, q, order - 0.5) == bound);  // rounded up
    }
  CHECK(sampled_rdp(gaussian, 0.1, 2) == doctest::Approx(sampled_gaussian_rdp({0.1, 1.3}, 2)).epsilon(1e-12));
  CHECK(sampled_rdp(gaussian, 1, 2.5) == gaussian(2.5));
  CHECK(sampled_rdp(gaussian, 0, 2.5) == 0);
}

TEST_CASE("rdp: sampling is Zhu and Wang's theorem 5, summed as it is printed") {
  const auto theorem = [](const RdpCurve& base, double q, int order) {
    const auto term = [&](int l) {
      long double choose = 1;
      for (int i = 1; i <= l; ++i) choose = choose * (order - l + i) / i;
      return choose * std::pow(1.0L - q, order - l) * std::pow(static_cast<long double>(q), l) *
             std::exp(static_cast<long double>(l - 1) * base(l));
    };
    long double sum = std::pow(1.0L - q, order - 1) * (order * q - q + 1) + term(2);
    for (int l = 3; l <= order; ++l) sum += 3 * term(l);
    return static_cast<double>(std::log(sum) / (order - 1));
  };
  const RdpCurve laplace = [](double order) { return laplace_rdp(0.8, order); };
  const RdpCurve gaussian = [](double order) { return gaussian_rdp(1.3, order); };
  for (const RdpCurve& base : {laplace, gaussian})
    for (const double q : {0.05, 0.3, 0.8})
      for (const int order : {2, 3, 4, 9, 16})
        CHECK(relative(sampled_rdp(base, q, order), theorem(base, q, order)) < 1e-12);
}

TEST_CASE("rdp: cohorts of fixed size, by reference, and 1 of them all") {
  CHECK(fixed_cohort_gaussian_rdp({1, 2}, 3) == gaussian_rdp(2, 3));
  CHECK(fixed_cohort_gaussian_rdp({0, 2}, 3) == 0);
  CHECK(relative(fixed_cohort_gaussian_rdp({0.01, 2}, 8), 0.0004684162610720199) < 1e-10);
  CHECK(relative(fixed_cohort_gaussian_rdp({0.05, 5}, 32), 0.007151547918853918) < 1e-10);
  for (const auto& vector : reference_vectors("without_replacement")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    const double got = fixed_cohort_gaussian_rdp({params["q"], params["sigma"]}, params["order"]);
    CHECK(relative(got, vector["value"]) < vector["tol_rel"].get<double>());
  }
}

}  // namespace fedge::privacy
