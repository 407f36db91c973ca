// Tests how far one client can change a sum, and the noise that hides it.
#include "run/privacy/private_sum.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/crypto/sha256.h"
#include "run/run_config.h"

namespace fedge::run {
namespace {

constexpr std::size_t kParameters = 60;

std::shared_ptr<const ParameterLayout> small_layout() {
  ParameterLayout layout;
  layout.add("dense1.weight", {4, 10}, {.layer = 0});
  layout.add("dense1.bias", {4}, {.layer = 0});
  layout.add("dense2.weight", {2, 6}, {.layer = 1});
  layout.add("frozen", {4}, {.layer = 2, .trainable = false});
  return std::make_shared<const ParameterLayout>(std::move(layout));
}

RunConfig config_of(const std::string& more) {
  const auto document = config::parse_toml(
      "[data]\npartition = { clients = 40 }\n[differential_privacy]\nkind = \"central\"\n" + more,
      "run.toml");
  REQUIRE(document);
  auto run = read_run_config(*document);
  REQUIRE_MESSAGE(run, run.error().message);
  return std::move(*run);
}

class Values final : public aggregation::UpdateValues {
 public:
  explicit Values(std::vector<float> values, bool in_memory) : values_(std::move(values)), held_(in_memory) {}
  std::span<const float> in_memory() const override {
    return held_ ? std::span<const float>(values_) : std::span<const float>();
  }
  Result<void> read(std::size_t first, std::span<float> out) const override {
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    return {};
  }

 private:
  std::vector<float> values_;
  bool held_;
};

// The aggregation rule of a small model with differential privacy.
struct Model {
  explicit Model(const std::string& more)
      : run(config_of(more)),
        layout(small_layout()),
        rule(run.strategy.aggregator.make(
            {.layout = layout, .fixed_point = run.strategy.fixed_point, .max_updates = 10})),
        sum(run.privacy, run.strategy.fixed_point, layout),
        unit(static_cast<double>(run.privacy.weight) * run.strategy.fixed_point.unit()) {}

  void add(const std::vector<float>& values, bool in_memory = true) {
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
    auto clipped = sum.clip({.client = ClientId(1),
                             .weight = SampleCount(7),
                             .norm = std::sqrt(squares),
                             .coverage = layout->trainable(),
                             .values = std::make_shared<Values>(values, in_memory)});
    REQUIRE(clipped);
    REQUIRE(rule->add({&*clipped, 1}, parallel));
  }
  std::vector<std::int64_t> release(std::uint8_t key, RoundNumber round = RoundNumber(1)) {
    const Secret root{Digest{key}};
    const PrivateSum::Noise noise{&root, {round, TrackId()}};
    REQUIRE(sum.release(*rule, noise, parallel));
    return {rule->sums().begin(), rule->sums().end()};
  }

  RunConfig run;
  std::shared_ptr<const ParameterLayout> layout;
  std::unique_ptr<aggregation::Aggregator> rule;
  PrivateSum sum;
  double unit;
  Sequential parallel;
};

double norm_of(std::span<const std::int64_t> sums) {
  double squares = 0;
  for (const std::int64_t sum : sums) squares += static_cast<double>(sum) * static_cast<double>(sum);
  return std::sqrt(squares);
}

// 56 values of the trainable parameters; those of the first layer are larger.
std::vector<float> update(float size) {
  std::vector<float> values;
  for (std::size_t i = 0; i < 56; ++i)
    values.push_back(size * (i < 44 ? 1.0F : 0.01F) * (i % 3 == 0 ? -1.0F : 0.5F));
  return values;
}

}  // namespace

TEST_CASE("noise: it hides also what rounding each number to whole units may change") {
  // 16 numbers, each rounded by at most half a unit, add 2 to the norm: noise of 3 times 10 + 2.
  CHECK(noise_deviation(3, 10, 16) == 36);
  CHECK(noise_deviation(0.5, 0, 4) == 0.5);
}

TEST_CASE("private sum: no update is more than the clipping norm, and a smaller one is what it was") {
  for (const bool in_memory : {true, false}) {
    Model model("noise_multiplier = 1.0\nclipping_norm = 2.0\n");
    model.add(update(50), in_memory);
    const double most = 2 * model.unit;
    CHECK(norm_of(model.rule->sums()) <= most + std::sqrt(56.0) / 2);
    CHECK(norm_of(model.rule->sums()) > 0.9999 * most);
    model.rule->clear();
    model.add(update(0.01F), in_memory);
    CHECK(model.rule->sums()[0] == std::llround(-0.01F * static_cast<float>(model.unit)));
  }
}

TEST_CASE("private sum: by layers each is at most its part of the norm") {
  for (const bool in_memory : {true, false}) {
    Model model("noise_multiplier = 1.0\nclipping_norm = 2.0\nclipping = \"per_layer\"\n");
    model.add(update(50), in_memory);
    const auto sums = model.rule->sums();
    const double part = 2 * model.unit / std::sqrt(2.0);
    CHECK(norm_of(sums.subspan(0, 44)) <= part + std::sqrt(44.0) / 2);
    CHECK(norm_of(sums.subspan(0, 44)) > 0.9999 * part);
    // The second layer's norm is 50 * 0.01 * sqrt(4 + 8 / 4) = 1.22, below its bound of 1.41.
    CHECK(norm_of(sums.subspan(44, 12)) == doctest::Approx(0.5 * std::sqrt(6.0) * model.unit).epsilon(1e-4));
  }
}

TEST_CASE("private sum: the noise is that of the guarantee, on every trainable parameter and no other") {
  // A new key in each iteration: 56 * 200 samples in total.
  double squares = 0;
  double sum = 0;
  Model model("noise_multiplier = 1.5\nclipping_norm = 2.0\n");
  for (std::uint8_t key = 0; key < 200; ++key) {
    model.rule->clear();
    const auto noise = model.release(key);
    REQUIRE(noise.size() == kParameters);
    for (std::size_t i = 0; i < 56; ++i) {
      sum += static_cast<double>(noise[i]);
      squares += static_cast<double>(noise[i]) * static_cast<double>(noise[i]);
    }
    for (std::size_t i = 56; i < kParameters; ++i) CHECK(noise[i] == 0);
  }
  constexpr double kSamples = 56 * 200;
  const double sigma = 1.5 * (2 * model.unit + std::sqrt(56.0) / 2);
  // Six standard errors.
  CHECK(std::abs(sum / kSamples) < 6 * sigma / std::sqrt(kSamples));
  CHECK(std::abs(squares / kSamples / (sigma * sigma) - 1) < 6 * std::sqrt(2 / kSamples));
}

TEST_CASE("private sum: the same sum has the same noise, another sum, task or key another") {
  Model model("noise_multiplier = 1.0\n");
  const auto noise = [&](float size, std::uint8_t key, std::uint32_t round) {
    model.rule->clear();
    model.add(update(size));
    const std::vector<std::int64_t> before(model.rule->sums().begin(), model.rule->sums().end());
    auto after = model.release(key, RoundNumber(round));
    for (std::size_t i = 0; i < after.size(); ++i) after[i] -= before[i];
    return after;
  };
  const auto first = noise(0.01F, 1, 1);
  CHECK(noise(0.01F, 1, 1) == first);
  CHECK(noise(0.02F, 1, 1) != first);
  CHECK(noise(0.01F, 2, 1) != first);
  CHECK(noise(0.01F, 1, 2) != first);
}

TEST_CASE("private sum: the mean is over those that a round expects, whoever comes") {
  Model model("noise_multiplier = 1e-3\nclipping_norm = 1.0\n");
  model.add(update(0.01F));
  model.release(1);
  REQUIRE(model.rule->prepare(model.parallel));
  CHECK(model.rule->covered().count() == 56);
  std::vector<double> mean(kParameters);
  REQUIRE(model.rule->read(0, mean, model.parallel));
  // 10 of 40 clients are expected; one has delivered.
  CHECK(mean[0] == doctest::Approx(-0.01 / 10).epsilon(0.5));
  model.rule->clear();
  model.release(1);
  CHECK(model.rule->prepare(model.parallel));  // no client has delivered
}

TEST_CASE("private sum: a norm that adapts goes to the quantile, and the sums stay as fine") {
  // Norms from 0.1 to 1.9 in each round, with little noise on the number of clipped updates.
  Model model(
      "noise_multiplier = 0.1\nclipping = \"adaptive\"\nclipping_norm = 100.0\ncount_noise = 0.06\n"
      "target_quantile = 0.5\nclipping_rate = 0.5\n");
  const std::vector<float> ones = update(1);
  double one = 0;
  for (const float value : ones) one += static_cast<double>(value) * static_cast<double>(value);
  std::vector<double> norms;
  for (std::uint32_t round = 1; round <= 60; ++round) {
    for (int k = 0; k < 10; ++k) {
      std::vector<float> values = ones;
      for (float& value : values) value *= static_cast<float>((0.1 + 0.2 * k) / std::sqrt(one));
      model.add(values);
    }
    if (round == 60) {
      // The sum of ten clipped updates in units of the norm.
      CHECK(norm_of(model.rule->sums()) < 10 * 100 * model.unit);
      CHECK(norm_of(model.rule->sums()) > 5 * 100 * model.unit);
    }
    model.release(static_cast<std::uint8_t>(round), RoundNumber(round));
    std::vector<double> mean(kParameters);
    REQUIRE(model.rule->read(0, mean, model.parallel));
    model.sum.close();
    model.rule->clear();
    norms.push_back(model.sum.clipping_norm());
  }
  // All ten norms are below the bound: it shrinks by exp(-0.5 * (1 - 0.5)).
  CHECK(norms[0] == doctest::Approx(100 * std::exp(-0.25)).epsilon(0.02));
  CHECK(norms.back() > 0.7);
  CHECK(norms.back() < 1.3);
}

}  // namespace fedge::run
