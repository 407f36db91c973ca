// Optimal sampling on random instances: the constraints, optimality against slow references, the estimator
// over all outcomes, and the loss of the published set rule.
#include "aggregation/samplers/optimal_sampling.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/aggregation.h"
#include "tests/support/sampling_reference.h"

namespace fedge::aggregation {
namespace {

using Doubles = std::vector<double>;

struct Instance {
  Doubles q;
  Doubles r;
  double budget = 0;
};

double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

// Standard normal by a sum; its tails do not matter here.
double normal(std::mt19937_64& engine) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(engine);
  return sum;
}

// Norms over several orders of magnitude, some 0, some equal; costs of a few levels or random.
Instance random_instance(std::mt19937_64& engine, std::size_t max_clients) {
  Instance instance;
  const std::size_t clients = 1 + engine() % max_clients;
  const double spread = 3 * uniform(engine);
  const bool levels = engine() % 2 == 0;
  for (std::size_t k = 0; k < clients; ++k) {
    const bool special = engine() % 8 == 0;
    instance.q.push_back(special ? static_cast<double>(engine() % 2) : std::exp(spread * normal(engine)));
    instance.r.push_back(levels ? (engine() % 10 == 0 ? 1.0 : 0.2) : 0.001 + 0.999 * uniform(engine));
  }
  instance.budget =
      (0.001 + 0.998 * uniform(engine)) * std::accumulate(instance.r.begin(), instance.r.end(), 0.0);
  return instance;
}

Doubles value(Result<Doubles> result) {
  REQUIRE(result);
  return std::move(result).value();
}

double spent(const Doubles& r, const Doubles& p) {
  return std::inner_product(r.begin(), r.end(), p.begin(), 0.0);
}

// The norms as the functions use them: at least 1e-8 of the largest, which becomes 1; all 1 if all are 0.
Doubles floored(Doubles q) {
  const double largest = *std::max_element(q.begin(), q.end());
  for (double& norm : q) norm = largest == 0 ? 1.0 : std::max(norm / largest, 1e-8);
  return q;
}

// The reference: p_k = min(1, q_k / sqrt(lambda r_k)), with lambda bisected until the budget is met.
Doubles by_bisection(const Instance& instance, const Doubles& q) {
  Doubles p(q.size());
  double low = -2100;  // log2(1 / sqrt(lambda)) that spends too little
  double high = 2100;  // and one that spends too much
  for (int step = 0; step < 200; ++step) {
    const double middle = low + (high - low) / 2;
    for (std::size_t k = 0; k < q.size(); ++k)
      p[k] = std::min(1.0, std::exp2(std::min(middle + std::log2(q[k] / std::sqrt(instance.r[k])), 1.0)));
    (spent(instance.r, p) < instance.budget ? low : high) = middle;
  }
  return p;
}

}  // namespace

TEST_CASE("optimal sampling: probabilities are positive, at most 1, and spend the budget exactly") {
  std::mt19937_64 engine(1);
  for (int trial = 0; trial < 3000; ++trial) {
    CAPTURE(trial);
    const Instance instance = random_instance(engine, 200);
    const Doubles p = value(optimal_probabilities({instance.q, instance.r, instance.budget}));
    for (const double each : p) REQUIRE((each > 0 && each <= 1));
    REQUIRE(std::abs(spent(instance.r, p) - instance.budget) <= 1e-9);
  }
}

TEST_CASE("optimal sampling: probabilities are those of the level found by bisection") {
  std::mt19937_64 engine(2);
  for (int trial = 0; trial < 500; ++trial) {
    CAPTURE(trial);
    const Instance instance = random_instance(engine, 60);
    const Doubles p = value(optimal_probabilities({instance.q, instance.r, instance.budget}));
    const bool all_zero = std::all_of(instance.q.begin(), instance.q.end(), [](double q) { return q == 0; });
    // Zero norms give the uniform p; norms of sqrt(r) would give the same.
    Doubles q = floored(instance.q);
    if (all_zero)
      for (std::size_t k = 0; k < q.size(); ++k) q[k] = std::sqrt(instance.r[k]);
    const Doubles expected = by_bisection(instance, q);
    for (std::size_t k = 0; k < p.size(); ++k) REQUIRE(p[k] == doctest::Approx(expected[k]).epsilon(1e-9));
  }
}

TEST_CASE("optimal sampling: no exchange of budget between two clients lowers the variance") {
  std::mt19937_64 engine(3);
  for (int trial = 0; trial < 300; ++trial) {
    CAPTURE(trial);
    const Instance instance = random_instance(engine, 12);
    const Doubles q = floored(instance.q);
    const Doubles p = value(optimal_probabilities({q, instance.r, instance.budget}));
    const double best = sampling_variance(q, p);
    for (std::size_t from = 0; from < p.size(); ++from)
      for (std::size_t to = 0; to < p.size(); ++to)
        for (const double part : {0.5, 1e-2, 1e-4}) {
          const double most = std::min(part * p[from] * instance.r[from], (1 - p[to]) * instance.r[to]);
          if (from == to || most <= 0) continue;
          Doubles other = p;
          other[from] -= most / instance.r[from];
          other[to] = std::min(1.0, other[to] + most / instance.r[to]);
          REQUIRE(sampling_variance(q, other) >= best * (1 - 1e-12));
        }
  }
}

TEST_CASE("optimal sampling: never worse than uniform sampling at the same expected upload") {
  std::mt19937_64 engine(4);
  for (int trial = 0; trial < 3000; ++trial) {
    CAPTURE(trial);
    const Instance instance = random_instance(engine, 100);
    const double all = std::accumulate(instance.r.begin(), instance.r.end(), 0.0);
    const Doubles uniform_p(instance.q.size(), instance.budget / all);
    const Doubles p = value(optimal_probabilities({instance.q, instance.r, instance.budget}));
    REQUIRE(sampling_variance(instance.q, p) <= sampling_variance(instance.q, uniform_p) * (1 + 1e-9));
    // Equal if all q / sqrt(r) are equal.
    Doubles level;
    for (const double cost : instance.r) level.push_back(3.5 * std::sqrt(cost));
    const Doubles same = value(optimal_probabilities({level, instance.r, instance.budget}));
    for (const double each : same) REQUIRE(each == doctest::Approx(instance.budget / all).epsilon(1e-12));
  }
}

TEST_CASE("optimal sampling: with equal costs it is the classical formula, AOCS and the published rule") {
  std::mt19937_64 engine(5);
  for (int trial = 0; trial < 2000; ++trial) {
    CAPTURE(trial);
    Instance instance = random_instance(engine, 100);
    instance.budget = uniform(engine) * static_cast<double>(instance.q.size());
    const Doubles exact = classical_probabilities(instance.q, instance.budget);
    const Doubles steps = value(approximate_probabilities(instance.q, instance.budget));
    const Doubles filled = value(optimal_probabilities({instance.q, {}, instance.budget}));
    const Doubles published = value(paper_set_rule({instance.q, {}, instance.budget}));
    for (std::size_t k = 0; k < exact.size(); ++k) {
      REQUIRE(std::abs(steps[k] - exact[k]) <= 1e-12);
      REQUIRE(std::abs(filled[k] - exact[k]) <= 1e-12);
      REQUIRE(std::abs(published[k] - exact[k]) <= 1e-12);
    }
  }
}

TEST_CASE("optimal sampling: AOCS needs at most 50 steps, and its first is not enough") {
  std::mt19937_64 engine(6);
  double farthest = 0;
  for (int trial = 0; trial < 500; ++trial) {
    CAPTURE(trial);
    Instance instance = random_instance(engine, 100);
    instance.budget = uniform(engine) * static_cast<double>(instance.q.size());
    const Doubles exact = classical_probabilities(instance.q, instance.budget);
    const Doubles some = value(approximate_probabilities(instance.q, instance.budget, 50));
    const Doubles none = value(approximate_probabilities(instance.q, instance.budget, 0));
    for (std::size_t k = 0; k < exact.size(); ++k) {
      REQUIRE(std::abs(some[k] - exact[k]) <= 1e-12);
      farthest = std::max(farthest, std::abs(none[k] - exact[k]));
    }
  }
  CHECK(farthest > 0.1);
}

TEST_CASE("optimal sampling: over all outcomes the estimate has the true mean and the stated variance") {
  std::mt19937_64 engine(7);
  for (int trial = 0; trial < 40; ++trial) {
    CAPTURE(trial);
    const Instance instance = random_instance(engine, 10);
    const std::size_t clients = instance.q.size();
    // Updates of three values, samples n, and the norms q = n ||U||.
    std::vector<Doubles> updates(clients, Doubles(3));
    Doubles n(clients);
    Doubles q(clients);
    for (std::size_t k = 0; k < clients; ++k) {
      for (double& x : updates[k]) x = normal(engine);
      n[k] = static_cast<double>(1 + engine() % 500);
      q[k] =
          n[k] * std::sqrt(std::inner_product(updates[k].begin(), updates[k].end(), updates[k].begin(), 0.0));
    }
    const double samples = std::accumulate(n.begin(), n.end(), 0.0);
    const Doubles p = value(optimal_probabilities({q, instance.r, instance.budget}));
    Doubles truth(3, 0.0);
    for (std::size_t k = 0; k < clients; ++k)
      for (std::size_t i = 0; i < 3; ++i) truth[i] += n[k] / samples * updates[k][i];
    Doubles mean(3, 0.0);
    double variance = 0;
    double upload = 0;
    for (std::size_t drawn = 0; drawn < (std::size_t{1} << clients); ++drawn) {
      double probability = 1;
      double cost = 0;
      Doubles estimate(3, 0.0);
      for (std::size_t k = 0; k < clients; ++k) {
        const bool in = (drawn >> k & 1) != 0;
        probability *= in ? p[k] : 1 - p[k];
        if (!in) continue;
        cost += instance.r[k];
        for (std::size_t i = 0; i < 3; ++i) estimate[i] += n[k] / samples / p[k] * updates[k][i];
      }
      upload += probability * cost;
      for (std::size_t i = 0; i < 3; ++i) {
        mean[i] += probability * estimate[i];
        variance += probability * (estimate[i] - truth[i]) * (estimate[i] - truth[i]);
      }
    }
    for (std::size_t i = 0; i < 3; ++i) REQUIRE(std::abs(mean[i] - truth[i]) <= 1e-12);
    REQUIRE(std::abs(upload - instance.budget) <= 1e-12);
    REQUIRE(sampling_variance(q, p) / samples / samples == doctest::Approx(variance).epsilon(1e-9));
  }
}

TEST_CASE("optimal sampling: over all outcomes the mean of 1 / p times the uploads is that of all updates") {
  // Uses the mean of a run, with clients that train parts: a client that was not drawn counts as zeros.
  constexpr std::size_t kParameters = 12;
  constexpr std::uint32_t kClients = 6;
  std::mt19937_64 engine(9);
  std::vector<Update> updates;
  Doubles q, r, sums(kParameters, 0.0), weights(kParameters, 0.0);
  for (std::uint32_t client = 0; client < kClients; ++client) {
    const std::size_t begin = client % 4;
    const Coverage part = Coverage::of({{begin, begin + 4}, {begin + 6, begin + 8}});
    std::vector<float> values;
    for (std::size_t i = 0; i < part.count(); ++i) values.push_back(static_cast<float>(normal(engine)));
    updates.push_back(test_update(client, values, 1 + engine() % 50));
    updates.back().coverage = part;
    const double samples = static_cast<double>(updates.back().weight.value());
    q.push_back(samples * updates.back().norm);
    r.push_back(static_cast<double>(part.count()) / kParameters);
    for (std::size_t i = 0, position = 0; i < kParameters; ++i) {
      if (!part.contains(i)) continue;
      sums[i] += samples * static_cast<double>(values[position++]);
      weights[i] += samples;
    }
  }
  const Doubles p = value(optimal_probabilities({q, r, 1.4}));
  CHECK(*std::min_element(p.begin(), p.end()) < 0.5);
  Sequential sequential;
  const auto aggregator = make_aggregator("mean", test_context(kParameters));
  Doubles expectation(kParameters, 0.0);
  for (std::size_t drawn = 0; drawn < (std::size_t{1} << kClients); ++drawn) {
    double probability = 1;
    for (std::uint32_t client = 0; client < kClients; ++client) {
      Update update = updates[client];
      const bool in = (drawn >> client & 1) != 0;
      probability *= in ? p[client] : 1 - p[client];
      update.factor = in ? 1 / p[client] : 1;
      if (!in) update.values = nullptr;
      REQUIRE(aggregator->add({&update, 1}, sequential));
    }
    const Doubles mean = aggregate_of(*aggregator, kParameters);
    for (std::size_t i = 0; i < kParameters; ++i) expectation[i] += probability * mean[i];
    aggregator->clear();
  }
  // Factors have 29 bits, contributions are multiples of 2^-28.
  for (std::size_t i = 0; i < kParameters; ++i)
    CHECK(std::abs(expectation[i] - (weights[i] > 0 ? sums[i] / weights[i] : 0.0)) < 1e-7);
}

TEST_CASE("optimal sampling: on the paper's mix the published set rule underspends and is not optimal") {
  // 100 clients, 10 of cost 1 and 90 of 0.2, budget 10; log-normal norms of sigma 0.6.
  constexpr int kInstances = 3000;
  std::mt19937_64 engine(8);
  double least_spent = 2;
  double most_spent = 0;
  double spent_sum = 0;
  double best = 2;
  double worst = 0;
  double ratio_sum = 0;
  for (int trial = 0; trial < kInstances; ++trial) {
    Instance instance;
    for (int k = 0; k < 100; ++k) {
      instance.q.push_back(std::exp(0.6 * normal(engine)));
      instance.r.push_back(k < 10 ? 1.0 : 0.2);
    }
    const SamplingInputs inputs{instance.q, instance.r, 10};
    const Doubles published = value(paper_set_rule(inputs));
    const double part = spent(instance.r, published) / 10;
    const double ratio = sampling_variance(instance.q, published) /
                         sampling_variance(instance.q, value(optimal_probabilities(inputs)));
    REQUIRE(part <= 1 + 1e-12);
    REQUIRE(ratio >= 1 - 1e-12);
    least_spent = std::min(least_spent, part);
    most_spent = std::max(most_spent, part);
    spent_sum += part;
    best = std::min(best, ratio);
    worst = std::max(worst, ratio);
    ratio_sum += ratio;
  }
  CHECK(least_spent == doctest::Approx(0.89).epsilon(0.03));
  CHECK(spent_sum / kInstances == doctest::Approx(0.97).epsilon(0.01));
  CHECK(most_spent > 0.999);
  CHECK(best < 1.001);
  CHECK(worst > 1.2);
  CHECK(worst < 1.5);
  CHECK(ratio_sum / kInstances == doctest::Approx(1.06).epsilon(0.03));
}

}  // namespace fedge::aggregation
