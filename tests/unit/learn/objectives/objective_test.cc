// Objectives, parts of a model and work limits in local training, against softmax regression in double
// precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stop_token>
#include <vector>

#include "learn/trainer.h"
#include "tests/unit/learn/small_problem.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

constexpr std::size_t kObjectiveInputs = 64;
constexpr std::size_t kClasses = learn::test::SmallProblem::kClasses;

// Options of the reference. Weights [class][input] come first, then biases, as in the model.
struct Reference {
  double rate = 0;
  double momentum = 0;
  double decay = 0;
  double mu = 0;
  std::vector<double> correction;
  std::vector<bool> moves;
};

std::vector<double> mean_gradient(const Dataset& data, const std::vector<double>& w) {
  std::vector<double> gradient(w.size());
  const std::size_t samples = data.labels.size();
  for (std::size_t n = 0; n < samples; ++n) {
    const float* x = data.floats.data() + n * kObjectiveInputs;
    std::vector<double> p(kClasses);
    double total = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      double logit = w[kClasses * kObjectiveInputs + c];
      for (std::size_t i = 0; i < kObjectiveInputs; ++i)
        logit += w[c * kObjectiveInputs + i] * static_cast<double>(x[i]);
      p[c] = std::exp(logit);
      total += p[c];
    }
    for (std::size_t c = 0; c < kClasses; ++c) {
      const double slope = (p[c] / total - (c == data.labels[n] ? 1.0 : 0.0)) / static_cast<double>(samples);
      for (std::size_t i = 0; i < kObjectiveInputs; ++i)
        gradient[c * kObjectiveInputs + i] += slope * static_cast<double>(x[i]);
      gradient[kClasses * kObjectiveInputs + c] += slope;
    }
  }
  return gradient;
}

// Full-batch steps of the reference.
std::vector<double> reference_training(const learn::test::SmallProblem& problem, const Reference& r,
                                       int steps) {
  const std::vector<double> start(problem.initial.begin(), problem.initial.end());
  std::vector<double> w = start;
  std::vector<double> velocity(w.size());
  for (int step = 0; step < steps; ++step) {
    const auto gradient = mean_gradient(problem.data, w);
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (!r.moves.empty() && !r.moves[i]) continue;
      const double pull = r.mu * (w[i] - start[i]);
      const double correction = r.correction.empty() ? 0.0 : r.correction[i];
      velocity[i] = r.momentum * velocity[i] + gradient[i] + pull + correction + r.decay * w[i];
      w[i] -= r.rate * velocity[i];
    }
  }
  return w;
}

TrainingSpec full_batch(std::size_t steps) {
  TrainingSpec spec;
  spec.learning_rate = 0.2F;
  spec.batch_size = learn::test::SmallProblem::kSamples;
  spec.local_epochs = steps;
  return spec;
}

std::vector<float> train(const learn::test::SmallProblem& problem, const TrainingSpec& spec,
                         const TrainingOptions& options = {}) {
  std::vector<float> parameters = problem.initial;
  Trainer(*problem.model, spec).train(parameters, problem.data, problem.samples, Rng(6), options);
  return parameters;
}

double distance(const std::vector<float>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

double moved(const learn::test::SmallProblem& problem, const std::vector<float>& to) {
  double squares = 0;
  for (std::size_t i = 0; i < to.size(); ++i)
    squares += std::pow(static_cast<double>(to[i]) - static_cast<double>(problem.initial[i]), 2);
  return std::sqrt(squares);
}

bool unchanged_outside(const learn::test::SmallProblem& problem, const std::vector<float>& trained,
                       const Coverage& coverage) {
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (!coverage.contains(i) && std::memcmp(&trained[i], &problem.initial[i], sizeof(float)) != 0)
      return false;
  return true;
}

// Calls `check` for all combinations of coverage, momentum and the other options.
template <class Check>
void for_each_way(const learn::test::SmallProblem& problem, Check check) {
  const std::vector<Coverage> coverages = {Coverage::all(problem.size()),
                                           learn::test::random_rows(problem.layout(), 0.5, Rng(17)),
                                           learn::test::random_ranges(problem.size(), Rng(18)), Coverage()};
  for (const Coverage& coverage : coverages)
    for (const float momentum : {0.0F, 0.8F})
      for (const float decay : {0.0F, 0.05F}) {
        CAPTURE(coverage.count());
        CAPTURE(momentum);
        CAPTURE(decay);
        TrainingSpec spec = full_batch(6);
        spec.momentum = momentum;
        spec.weight_decay = decay;
        Reference reference{.rate = static_cast<double>(spec.learning_rate),
                            .momentum = static_cast<double>(momentum),
                            .decay = static_cast<double>(decay)};
        for (std::size_t i = 0; i < problem.size(); ++i) reference.moves.push_back(coverage.contains(i));
        check(spec, reference, coverage);
      }
}

std::vector<float> random_correction(std::size_t size) {
  std::vector<float> correction(size);
  Rng rng(19);
  for (float& value : correction) value = static_cast<float>(0.1 * rng.normal());
  return correction;
}

}  // namespace

TEST_CASE("objective: plain training of a coverage moves it as double precision does, and nothing else") {
  const learn::test::SmallProblem problem("softmax", learn::test::softmax_spec());
  for_each_way(problem, [&](const TrainingSpec& spec, const Reference& reference, const Coverage& coverage) {
    const auto trained = train(problem, spec, {.coverage = &coverage});
    CHECK(distance(trained, reference_training(problem, reference, 6)) < 3e-6);
    CHECK(unchanged_outside(problem, trained, coverage));
  });
}

TEST_CASE("objective: proximal adds mu (v - w) to the gradient") {
  const learn::test::SmallProblem problem("softmax", learn::test::softmax_spec());
  for_each_way(problem, [&](TrainingSpec spec, Reference reference, const Coverage& coverage) {
    spec.objective = {"proximal", 0.7F};
    reference.mu = static_cast<double>(0.7F);
    const auto trained = train(problem, spec, {.coverage = &coverage});
    CHECK(distance(trained, reference_training(problem, reference, 6)) < 3e-6);
    CHECK(unchanged_outside(problem, trained, coverage));
    if (!coverage.empty()) {
      spec.objective = {};
      CHECK(moved(problem, trained) < 0.99 * moved(problem, train(problem, spec, {.coverage = &coverage})));
    }
  });
}

TEST_CASE("objective: scaffold adds the correction to the gradient") {
  const learn::test::SmallProblem problem("softmax", learn::test::softmax_spec());
  const auto correction = random_correction(problem.size());
  for_each_way(problem, [&](TrainingSpec spec, Reference reference, const Coverage& coverage) {
    spec.objective.kind = "scaffold";
    reference.correction.assign(correction.begin(), correction.end());
    const auto trained = train(problem, spec, {.coverage = &coverage, .correction = correction});
    CHECK(distance(trained, reference_training(problem, reference, 6)) < 3e-6);
    CHECK(unchanged_outside(problem, trained, coverage));
  });
}

TEST_CASE("objective: mu = 0, and scaffold without a correction, are plain training to the bit") {
  learn::test::for_each_problem([](const learn::test::SmallProblem& problem) {
    TrainingSpec spec = full_batch(2);
    spec.batch_size = 4;
    const Coverage rows = learn::test::random_rows(problem.layout(), 0.5, Rng(17));
    const Coverage ranges = learn::test::random_ranges(problem.size(), Rng(18));
    for (const float momentum : {0.0F, 0.9F})
      for (const Coverage* coverage : {static_cast<const Coverage*>(nullptr), &rows, &ranges}) {
        spec.momentum = momentum;
        spec.objective = {};
        const auto plain = train(problem, spec, {.coverage = coverage});
        spec.objective = {"proximal", 0.0F};
        CHECK(train(problem, spec, {.coverage = coverage}) == plain);
        spec.objective = {"scaffold", 0.5F};  // only the proximal objective uses mu
        CHECK(train(problem, spec, {.coverage = coverage}) == plain);
        CHECK(plain != problem.initial);
      }
  });
}

TEST_CASE("objective: a coverage of everything is training without a coverage to the bit") {
  learn::test::for_each_problem([](const learn::test::SmallProblem& problem) {
    TrainingSpec spec = full_batch(2);
    spec.batch_size = 4;
    const Coverage all = Coverage::all(problem.size());
    for (const float momentum : {0.0F, 0.9F}) {
      spec.momentum = momentum;
      CHECK(train(problem, spec, {.coverage = &all}) == train(problem, spec));
    }
  });
}

TEST_CASE(
    "objective: rows and single parameters, with and without a stored gradient, end up at the same place") {
  // Covers the four implementations of a step: in place, stored gradient, velocity, and partial rows.
  learn::test::for_each_problem([](const learn::test::SmallProblem& problem) {
    TrainingSpec spec = full_batch(2);
    spec.batch_size = 5;
    spec.learning_rate = 0.05F;
    spec.weight_decay = 0.01F;
    const Coverage rows = learn::test::random_rows(problem.layout(), 0.5, Rng(21));
    // Without one parameter, the same rows are computed, but none in place.
    const std::size_t left_out = rows.parameter_at(rows.count() / 2);
    const Coverage ragged = rows.subtract(Coverage::of({{left_out, left_out + 1}}));
    const auto in_place = train(problem, spec, {.coverage = &rows});
    CHECK(unchanged_outside(problem, in_place, rows));
    TrainingSpec tiny = spec;
    tiny.momentum = 1e-9F;
    const auto with_velocity = train(problem, tiny, {.coverage = &rows});
    const auto without_one = train(problem, spec, {.coverage = &ragged});
    CHECK(distance(with_velocity, {in_place.begin(), in_place.end()}) < 5e-6);
    CHECK(without_one[left_out] == problem.initial[left_out]);
    CHECK(unchanged_outside(problem, without_one, ragged));
    // Freezing one weight changes the others less than training does.
    CHECK(distance(without_one, {in_place.begin(), in_place.end()}) < 0.5 * moved(problem, in_place));
  });
}

TEST_CASE("trainer: a trainer that trained parts, slices and other objectives gives the bits of a new one") {
  learn::test::for_each_problem([](const learn::test::SmallProblem& problem) {
    TrainingSpec spec = full_batch(2);
    spec.batch_size = 4;
    spec.momentum = 0.9F;
    spec.objective = {"proximal", 0.1F};
    const auto correction = random_correction(problem.size());
    const Coverage ranges = learn::test::random_ranges(problem.size(), Rng(18));
    const Coverage rows = learn::test::random_rows(problem.layout(), 0.4, Rng(20));
    const Coverage nothing;
    Trainer used(*problem.model, spec);
    for (const Coverage* coverage :
         {&rows, &nothing, &ranges, static_cast<const Coverage*>(nullptr), &rows}) {
      std::vector<float> parameters = problem.initial;
      used.train(parameters, problem.data, problem.samples, Rng(6),
                 {.coverage = coverage, .correction = correction});
      std::vector<float> other = problem.initial;
      Trainer(*problem.model, spec)
          .train(other, problem.data, problem.samples, Rng(6),
                 {.coverage = coverage, .correction = correction});
      CHECK(parameters == other);
    }
  });
}

TEST_CASE("trainer: max_steps ends training after so many steps, which are those of the longer training") {
  const learn::test::SmallProblem problem("mlp", learn::test::mlp_spec({11, 7}));
  TrainingSpec spec = full_batch(3);
  spec.batch_size = 5;  // 5 steps an epoch, 15 in all
  const auto result_of = [&](std::vector<float>& parameters, std::uint64_t max_steps) {
    parameters = problem.initial;
    return Trainer(*problem.model, spec)
        .train(parameters, problem.data, problem.samples, Rng(6), {.max_steps = max_steps});
  };
  std::vector<float> all, some, other;
  CHECK(result_of(all, 0).steps == 15);
  CHECK(result_of(some, 15).steps == 15);
  CHECK(some == all);
  CHECK(result_of(some, 1000).steps == 15);
  CHECK(some == all);
  for (const std::uint64_t limit : {1U, 5U, 7U}) {
    const TrainingResult result = result_of(some, limit);
    CHECK(result.steps == limit);
    CHECK(result.samples == SampleCount(learn::test::SmallProblem::kSamples));
    CHECK(some != all);
  }
  // Five steps are one epoch.
  CHECK(result_of(some, 5).steps == 5);
  spec.local_epochs = 1;
  const TrainingResult epoch = result_of(other, 0);
  CHECK(epoch.steps == 5);
  CHECK(other == some);
}

TEST_CASE("trainer: a request to finish, however early, leaves one step, as a limit of one does") {
  const learn::test::SmallProblem problem("mlp", learn::test::mlp_spec({11, 7}));
  std::stop_source finish;
  finish.request_stop();
  std::vector<float> parameters = problem.initial;
  const TrainingResult result =
      Trainer(*problem.model, full_batch(3))
          .train(parameters, problem.data, problem.samples, Rng(6), {.finish = finish.get_token()});
  CHECK(result.steps == 1);
  CHECK(result.samples == SampleCount(learn::test::SmallProblem::kSamples));
  std::vector<float> limited = problem.initial;
  Trainer(*problem.model, full_batch(3))
      .train(limited, problem.data, problem.samples, Rng(6), {.max_steps = 1});
  CHECK(parameters == limited);
  CHECK(parameters != problem.initial);
}

TEST_CASE("trainer: a part of the model costs its share of the weight gradients over a whole training") {
  const learn::test::SmallProblem problem("mlp", learn::test::mlp_spec({20, 15}));
  TrainingSpec spec = full_batch(2);
  spec.batch_size = 4;
  const Coverage rows = Coverage::of({{0, 4 * 64}});  // a fifth of the first layer's weights
  Trainer trainer(*problem.model, spec);
  std::vector<float> parameters = problem.initial;
  trainer.train(parameters, problem.data, problem.samples, Rng(6), {.coverage = &rows});
  CHECK(trainer.products().weights == 2 * learn::test::SmallProblem::kSamples * 4 * 64);
  CHECK(trainer.products().inputs == 2 * learn::test::SmallProblem::kSamples * (4 * 15 + 15 * 20));
}
