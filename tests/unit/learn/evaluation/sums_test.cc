#include "learn/evaluation/sums.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/evaluation/evaluate.h"
#include "tests/support/text.h"
#include "tests/unit/learn/small_problem.h"

namespace fedge::learn {
namespace {

using fedge::test::contains;
using Shape = EvaluationSums::Shape;

// Predictions of a classifier: the scores of each sample, and its label.
struct Predictions {
  std::size_t classes = 2;
  std::vector<std::vector<float>> scores;
  std::vector<std::size_t> labels;
};

EvaluationSums sums_of(const Predictions& all, const std::vector<std::size_t>& chosen) {
  EvaluationSums sums(Shape{.outputs = all.classes});
  for (const std::size_t i : chosen) sums.add(all.scores[i], all.labels[i]);
  sums.end_client(chosen.size());
  return sums;
}

EvaluationSums sums_of(const Predictions& all) {
  std::vector<std::size_t> every(all.labels.size());
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = i;
  return sums_of(all, every);
}

Predictions random_predictions(Rng& rng, std::size_t classes, std::size_t samples, double spread) {
  Predictions all{.classes = classes};
  for (std::size_t i = 0; i < samples; ++i) {
    all.labels.push_back(rng.below(classes));
    std::vector<float> scores(classes);
    for (float& score : scores) score = static_cast<float>(spread * rng.normal());
    scores[all.labels.back()] += static_cast<float>(spread);
    all.scores.push_back(std::move(scores));
  }
  return all;
}

// The area under the curve of class k against all others, by comparing every pair.
double pairwise_area(const Predictions& all, std::size_t k) {
  const auto probability = [&](std::size_t i) {
    double total = 0;
    for (const float score : all.scores[i])
      total += std::exp(static_cast<double>(score) - static_cast<double>(all.scores[i][k]));
    return 1 / total;
  };
  double wins = 0;
  double pairs = 0;
  for (std::size_t i = 0; i < all.labels.size(); ++i)
    for (std::size_t j = 0; j < all.labels.size(); ++j)
      if (all.labels[i] == k && all.labels[j] != k) {
        ++pairs;
        wins += probability(i) > probability(j) ? 1 : probability(i) == probability(j) ? 0.5 : 0;
      }
  return wins / pairs;
}

std::string refusal(const Shape& shape, const std::vector<std::int64_t>& values,
                    std::uint64_t most = std::uint64_t{1} << 40) {
  const auto sums = EvaluationSums::from(shape, values, most);
  return sums ? std::string() : sums.error().message;
}

}  // namespace

TEST_CASE("evaluation sums: a case computed by hand") {
  // Probabilities of class 1: 3/4, 1/4, 1/4, 3/4 (log 3 apart); labels 1, 0, 1, 0.
  const float high = std::log(3.0F);
  const Predictions all{2, {{0, high}, {high, 0}, {high, 0}, {0, high}}, {1, 0, 1, 0}};
  const EvaluationMetrics metrics = sums_of(all).metrics();
  CHECK(metrics.clients == 1);
  CHECK(metrics.samples == 4);
  CHECK(metrics.accuracy == 0.5);
  CHECK(metrics.loss == doctest::Approx((2 * std::log(4.0 / 3) + 2 * std::log(4.0)) / 4).epsilon(1e-6));
  CHECK(metrics.per_class_accuracy == std::vector<double>{0.5, 0.5});
  CHECK(metrics.confusion == std::vector<std::uint64_t>{1, 1, 1, 1});
  CHECK(*metrics.macro_f1 == doctest::Approx(0.5));
  // Pairs of a positive and a negative: 3/4 beats 1/4, 1/4 loses against 3/4, and two ties.
  CHECK(*metrics.auroc == doctest::Approx(0.5));
  CHECK(metrics.auroc_error == doctest::Approx(0.25));         // the two ties are within a bin
  CHECK(*metrics.calibration_error == doctest::Approx(0.25));  // half are right at a confidence of 3/4
}

TEST_CASE("evaluation sums: a row of the confusion matrix is a true class, a column a predicted one") {
  const std::vector<float> first = {1, 0, 0}, second = {0, 1, 0}, third = {0, 0, 1};
  const Predictions all{3, {first, second, second, third, first}, {0, 0, 0, 1, 2}};
  CHECK(sums_of(all).metrics().confusion == std::vector<std::uint64_t>{1, 2, 0, 0, 0, 1, 1, 0, 0});
  std::vector<float> many(EvaluationSums::Shape::kMostClasses + 1);
  CHECK(sums_of({many.size(), {many}, {0}}).metrics().confusion.empty());
}

TEST_CASE("evaluation sums: the sums of parts add up to those of all samples, whoever has which") {
  Rng rng(3);
  for (const std::size_t classes : {2U, 3U, 10U, 32U, 33U, 300U}) {
    const Predictions all = random_predictions(rng, classes, 200, 2.0);
    std::vector<std::vector<std::size_t>> parts(7);
    for (std::size_t i = 0; i < 200; ++i) parts[rng.below(6)].push_back(i);  // the last has none
    EvaluationSums total(Shape{.outputs = classes});
    std::size_t clients = 0;
    for (auto& part : parts) {
      std::ranges::reverse(part);
      total += sums_of(all, part);
      clients += part.empty() ? 0U : 1U;
    }
    const EvaluationSums pooled = sums_of(all);
    CHECK(total.metrics().clients == clients);
    // All but the number of clients.
    CHECK(std::ranges::equal(total.values().subspan(1), pooled.values().subspan(1)));
    CHECK(refusal(total.shape(), {total.values().begin(), total.values().end()}).empty());
    CHECK(total.values().size() <= EvaluationSums::kMostSums);
  }
}

TEST_CASE("evaluation sums: the AUROC is within its stated error of a comparison of every pair") {
  Rng rng(5);
  const auto check = [](const Predictions& all) {
    const EvaluationMetrics metrics = sums_of(all).metrics();
    double expected = 0;
    double classes = 0;
    for (std::size_t k = all.classes == 2 ? 1 : 0; k < all.classes; ++k) {
      expected += pairwise_area(all, k);
      ++classes;
    }
    REQUIRE(metrics.auroc.has_value());
    CHECK(std::abs(*metrics.auroc - expected / classes) <= metrics.auroc_error + 1e-12);
    return metrics.auroc_error;
  };
  for (const std::size_t classes : {2U, 3U, 10U})
    for (const double spread : {0.01, 1.0, 5.0, 100.0}) check(random_predictions(rng, classes, 300, spread));
  CHECK(check(random_predictions(rng, 2, 300, 2.0)) < 0.002);
  // Adversarial: all scores within one bin, in the order that a bin cannot see.
  Predictions near{.classes = 2};
  for (int i = 0; i < 100; ++i) {
    near.labels.push_back(i < 50 ? 0 : 1);
    near.scores.push_back({0.0F, 1e-5F * static_cast<float>(i)});
  }
  CHECK(check(near) == doctest::Approx(0.5));
  std::ranges::reverse(near.labels);
  check(near);
  // Beyond the bins: certain predictions.
  for (auto& scores : near.scores) scores[1] = 100 + 1000 * scores[1];
  check(near);
}

TEST_CASE("evaluation sums: without samples of a class there is no AUROC, and nothing is divided by zero") {
  const Predictions one{2, {{1, 0}, {0, 1}}, {0, 0}};
  const EvaluationMetrics metrics = sums_of(one).metrics();
  CHECK_FALSE(metrics.auroc.has_value());
  CHECK(metrics.per_class_accuracy[0] == 0.5);
  CHECK(std::isnan(metrics.per_class_accuracy[1]));
  const EvaluationMetrics nothing = sums_of(Predictions{}).metrics();
  CHECK(nothing.samples == 0);
  CHECK(nothing.clients == 0);
  CHECK_FALSE(nothing.macro_f1.has_value());
}

TEST_CASE("evaluation sums: scores that are not finite count as wrong, with the largest loss") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& scores :
       std::vector<std::vector<float>>{{nan, 0}, {0, nan}, {infinite, 0}, {nan, nan}})
    for (const std::size_t label : {0U, 1U}) {
      const EvaluationSums sums = sums_of(Predictions{2, {scores}, {label}});
      CHECK(sums.metrics().accuracy == 0);
      CHECK(sums.metrics().loss == 1024);
      CHECK(refusal(sums.shape(), {sums.values().begin(), sums.values().end()}).empty());
    }
}

TEST_CASE("evaluation sums: values that no samples can have are refused") {
  Rng rng(9);
  for (const std::size_t classes : {2U, 4U, 40U}) {
    const Predictions all = random_predictions(rng, classes, 50, 1.0);
    const EvaluationSums sums = sums_of(all);
    const std::vector<std::int64_t> right(sums.values().begin(), sums.values().end());
    REQUIRE(refusal(sums.shape(), right).empty());
    CHECK(refusal(sums.shape(), right, 50).empty());
    CHECK(contains(refusal(sums.shape(), right, 49), "50 samples, but at most 49 are possible"));
    CHECK(contains(refusal(sums.shape(), {right.begin(), right.end() - 1}), "sums, expected"));
    CHECK(contains(refusal(sums.shape(), {}), "0 sums, expected"));
    // A count that is one more or one less contradicts another one. Losses and confidences are only bounded.
    std::size_t undetected = 0;
    for (std::size_t i = 0; i < right.size(); ++i) {
      for (const std::int64_t change : {std::int64_t{-1}, std::int64_t{1}, -right[i] - 1,
                                        std::int64_t{1} << 62, std::int64_t{-2} - right[i]}) {
        std::vector<std::int64_t> wrong = right;
        wrong[i] += change;
        if (refusal(sums.shape(), wrong).empty()) ++undetected;
      }
      std::vector<std::int64_t> huge = right;
      huge[i] = std::numeric_limits<std::int64_t>::max();
      CHECK_FALSE(refusal(sums.shape(), huge).empty());
      huge[i] = std::numeric_limits<std::int64_t>::min();
      CHECK_FALSE(refusal(sums.shape(), huge).empty());
    }
    // The loss and the confidences of used bins, up and down; the number of clients up.
    CHECK(undetected <=
          2 * (EvaluationSums::kCalibrationBins + 1) + 2 * EvaluationSums::kCalibrationBins + 2);
  }
}

TEST_CASE("evaluation sums: a text has totals, perplexity and bits per byte") {
  EvaluationSums sums(Shape{.text = true, .outputs = 4});
  sums.add(std::vector<float>{0, 0, 0, 0}, 2, 1);
  sums.add(std::vector<float>{0, 0, 0, 0}, 0, 3);
  sums.end_client(1);
  const EvaluationMetrics metrics = sums.metrics();
  CHECK(metrics.samples == 1);
  CHECK(metrics.accuracy == 0.5);
  CHECK(*metrics.perplexity == doctest::Approx(4).epsilon(1e-6));
  CHECK(*metrics.bits_per_byte == doctest::Approx(1).epsilon(1e-6));  // 2 * 2 bits over 4 bytes
  CHECK_FALSE(metrics.auroc.has_value());
  CHECK(metrics.per_class_accuracy.empty());
  // A sample has a limited number of tokens.
  const std::vector<std::int64_t> values(sums.values().begin(), sums.values().end());
  CHECK(refusal(Shape{.text = true, .outputs = 4, .tokens = 2}, values).empty());
  CHECK(contains(refusal(Shape{.text = true, .outputs = 4, .tokens = 1}, values),
                 "2 predictions for 1 samples"));
}

TEST_CASE("evaluation sums: totals too large for an integer stay at the largest one") {
  EvaluationSums sums(Shape{.outputs = 2000 + 1});
  std::vector<std::int64_t> large(sums.values().size(), 0);
  const std::int64_t samples = std::int64_t{1} << 32;
  large = {1, samples, samples, samples, samples << 30, 0, samples, samples << 30};
  const auto one = EvaluationSums::from(sums.shape(), large);
  REQUIRE_MESSAGE(one, one.error().message);
  for (int i = 0; i < 4; ++i) sums += *one;
  CHECK(sums.values()[4] == std::numeric_limits<std::int64_t>::max());
  CHECK(sums.values()[1] == 4 * samples);
  large[1] = large[2] = samples + 1;
  CHECK(contains(refusal(sums.shape(), large), "at most 4294967296 are possible"));
}

TEST_CASE("evaluation: the sums of clients with parts of the data are those of the whole, bit for bit") {
  ModelSpec spec;
  SUBCASE("softmax") { spec = test::softmax_spec(); }
  SUBCASE("mlp") { spec = test::mlp_spec({9}); }
  SUBCASE("cnn") { spec = test::cnn_spec({3, 4}, 5); }
  const test::SmallProblem problem("evaluation", spec);
  Sequential here;
  const auto whole = evaluate(*problem.model, problem.initial, problem.data, here);
  REQUIRE(whole);
  CHECK(whole->sums.metrics().accuracy == whole->accuracy);
  CHECK(whole->sums.metrics().loss == doctest::Approx(whole->loss).epsilon(1e-5));
  std::vector<std::vector<std::uint32_t>> parts(5);
  Rng rng(2);
  for (std::uint32_t i = 0; i < problem.data.size(); ++i) parts[rng.below(4)].push_back(i);
  EvaluationSums total(sums_shape(*problem.model));
  for (const auto& part : parts) {
    const auto one = evaluate_samples(*problem.model, problem.initial, problem.data, part);
    REQUIRE(one);
    total += *one;
  }
  CHECK(std::ranges::equal(total.values().subspan(1), whole->sums.values().subspan(1)));
}

}  // namespace fedge::learn
