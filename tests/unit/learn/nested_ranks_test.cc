// Effects of nested ranks, prefixes and pruning on the gradients and steps of adapters, on a small MLP.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "learn/model.h"
#include "learn/models/adapters.h"
#include "learn/trainer.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

constexpr std::size_t kRank = 4;

struct Problem {
  Problem() {
    ModelSpec spec;
    spec.hidden = {6, 5};
    spec.adapter.rank = kRank;
    model = std::move(*make_model(spec, {2, 3, 1}, 4));
    parameters.resize(model->layout()->size());
    model->initialise(parameters, Rng(3));
    Rng rng(7);
    data.shape = {2, 3, 1};
    data.classes = 4;
    data.floats = AlignedBuffer<float>(12 * 6);
    for (float& value : data.floats.span()) value = static_cast<float>(rng.normal());
    for (std::size_t i = 0; i < 12; ++i) {
      data.labels.push_back(static_cast<Label>(i % 4));
      samples.push_back(static_cast<std::uint32_t>(i));
    }
  }
  // Fills the adapter, so that the factors B are not zero.
  void fill() {
    Rng rng(8);
    for (float& value : adapter()) value = static_cast<float>(0.3 * rng.normal());
  }
  std::span<float> adapter() { return std::span(parameters).subspan(shape().offset); }
  const AdapterLayout& shape() const { return model->adapters()->shape(); }
  Batch batch() const { return {.inputs = data.floats.span(), .labels = data.labels}; }

  std::vector<float> gradient(std::size_t ranks) const {
    const auto workspace = model->make_workspace(12);
    workspace->ranks = ranks;
    std::vector<float> all(parameters.size());
    model->loss_and_gradient(parameters, batch(), all, *workspace);
    return {all.begin() + static_cast<std::ptrdiff_t>(shape().offset), all.end()};
  }
  // Returns the parameters after training this many ranks.
  std::vector<float> trained(const TrainingSpec& spec, std::size_t ranks,
                             const std::vector<std::size_t>& truncations = {}, std::uint64_t seed = 1) const {
    std::vector<float> result = parameters;
    const Coverage moved = Coverage::of({shape().prefix(ranks)});
    Trainer(*model, spec)
        .train(result, data, samples, Rng(seed),
               {.coverage = &moved, .ranks = ranks, .truncations = truncations});
    return result;
  }

  std::unique_ptr<Model> model;
  std::vector<float> parameters;
  Dataset data;
  std::vector<std::uint32_t> samples;
};

TrainingSpec one_step(NestingKind nesting = NestingKind::kNone) {
  TrainingSpec spec;
  spec.learning_rate = 1;
  spec.batch_size = 12;
  spec.nesting = nesting;
  return spec;
}

double largest(std::span<const float> values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

}  // namespace

TEST_CASE("nested ranks: while B is zero every prefix is the frozen model, and a first step leaves A alone") {
  Problem p;
  std::vector<float> whole(12 * 4), none(12 * 4);
  const auto workspace = p.model->make_workspace(12);
  workspace->ranks = 0;
  p.model->forward(p.parameters, p.batch(), none, *workspace);
  for (std::size_t ranks = 1; ranks <= kRank; ++ranks) {
    workspace->ranks = ranks;
    p.model->forward(p.parameters, p.batch(), whole, *workspace);
    CHECK(whole == none);
  }
  const std::vector<float> after = p.trained(one_step(), kRank);
  for (std::size_t j = 0; j < kRank; ++j) {
    const std::size_t row = p.shape().prefix(j).end;
    const auto same = [&](std::size_t from, std::size_t to) {
      return std::equal(after.begin() + static_cast<std::ptrdiff_t>(row + from),
                        after.begin() + static_cast<std::ptrdiff_t>(row + to),
                        p.parameters.begin() + static_cast<std::ptrdiff_t>(row + from));
    };
    CHECK(same(0, p.shape().b_begin));
    CHECK_FALSE(same(p.shape().b_begin, p.shape().row));
  }
}

TEST_CASE("nested ranks: the gradient of a prefix is that of a model with so many ranks, and zero beyond") {
  Problem p;
  p.fill();
  for (std::size_t ranks = 1; ranks < kRank; ++ranks) {
    const std::vector<float> cut = p.gradient(ranks);
    CHECK(largest(std::span(cut).subspan(ranks * p.shape().row)) == 0);
    Problem smaller = Problem();
    smaller.fill();
    std::ranges::fill(smaller.adapter().subspan(ranks * p.shape().row), 0.0F);
    const std::vector<float> expected = smaller.gradient(kRank);
    // Ranks with zero factors do not change the gradient of the other ranks.
    for (std::size_t i = 0; i < ranks * p.shape().row; ++i)
      CHECK(static_cast<double>(cut[i]) ==
            doctest::Approx(static_cast<double>(expected[i])).epsilon(1e-4).scale(1e-3));
  }
}

TEST_CASE("nested ranks: gradients are those of central differences") {
  Problem p;
  p.fill();
  const auto workspace = p.model->make_workspace(12);
  workspace->ranks = 3;
  std::vector<float> unused(p.parameters.size());
  const std::vector<float> gradient = p.gradient(3);
  for (std::size_t i = 0; i < gradient.size(); i += 7) {
    const float kept = p.adapter()[i];
    const double step = 1e-2;
    double sides[2];
    for (const int side : {0, 1}) {
      p.adapter()[i] = kept + static_cast<float>(side == 0 ? -step : step);
      sides[side] =
          static_cast<double>(p.model->loss_and_gradient(p.parameters, p.batch(), unused, *workspace).mean);
    }
    p.adapter()[i] = kept;
    CHECK(static_cast<double>(gradient[i]) ==
          doctest::Approx((sides[1] - sides[0]) / (2 * step)).epsilon(0.02).scale(0.01));
  }
}

TEST_CASE("nested ranks: without a lower rank every way of nesting is plain training, to the bit") {
  Problem p;
  p.fill();
  const std::vector<float> plain = p.trained(one_step(), 3);
  for (const NestingKind kind : {NestingKind::kSum, NestingKind::kSample, NestingKind::kSandwich})
    CHECK(p.trained(one_step(kind), 3) == plain);
}

TEST_CASE("nested ranks: a step of sum is the mean of the steps at each rank, and sample draws one of them") {
  Problem p;
  p.fill();
  const std::vector<std::size_t> below = {1, 2};
  std::vector<std::vector<float>> steps;
  for (const std::size_t ranks : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    steps.push_back(p.gradient(ranks));
    for (float& value : steps.back()) value = -value;
  }
  const std::vector<float> summed = p.trained(one_step(NestingKind::kSum), 4, below);
  for (std::size_t i = 0; i < steps[0].size(); ++i) {
    const double mean = (static_cast<double>(steps[0][i]) + static_cast<double>(steps[1][i]) +
                         static_cast<double>(steps[2][i])) /
                        3;
    const std::size_t at = p.shape().offset + i;
    CHECK(static_cast<double>(summed[at]) - static_cast<double>(p.parameters[at]) ==
          doctest::Approx(mean).epsilon(1e-4).scale(1e-2));
  }
  // Each of the three steps is drawn, and no other step occurs.
  std::size_t drawn[3] = {};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<float> one = p.trained(one_step(NestingKind::kSample), 4, below, seed);
    std::size_t matching = 3;
    for (std::size_t kind = 0; kind < 3; ++kind) {
      double off = 0;
      for (std::size_t i = 0; i < steps[kind].size(); ++i) {
        const std::size_t at = p.shape().offset + i;
        off = std::max(off, std::abs(static_cast<double>(one[at]) - static_cast<double>(p.parameters[at]) -
                                     static_cast<double>(steps[kind][i])));
      }
      if (off < 1e-5) matching = kind;
    }
    REQUIRE(matching < 3);
    ++drawn[matching];
  }
  for (const std::size_t times : drawn) CHECK(times >= 8);
}

TEST_CASE("nested ranks: the loss that is told of a step of sum is the mean of the losses at each rank") {
  Problem p;
  p.fill();
  const std::vector<std::size_t> below = {1, 2};
  double mean = 0;
  double squares = 0;
  for (const std::size_t ranks : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    const auto workspace = p.model->make_workspace(12);
    workspace->ranks = ranks;
    std::vector<float> unused(p.parameters.size());
    const BatchLoss loss = p.model->loss_and_gradient(p.parameters, p.batch(), unused, *workspace);
    mean += static_cast<double>(loss.mean) / 3;
    squares += loss.squares / 3;
  }
  std::vector<float> trained = p.parameters;
  const Coverage moved = Coverage::of({p.shape().prefix(4)});
  const TrainingResult result =
      Trainer(*p.model, one_step(NestingKind::kSum))
          .train(trained, p.data, p.samples, Rng(1), {.coverage = &moved, .ranks = 4, .truncations = below});
  CHECK(result.mean_loss == doctest::Approx(mean).epsilon(1e-5));
  CHECK(result.rms_loss == doctest::Approx(std::sqrt(squares / 12)).epsilon(1e-5));
}

TEST_CASE("nested ranks: exchanging ranks within a segment exchanges what they learn, across segments not") {
  Problem p;
  p.fill();
  TrainingSpec spec = one_step(NestingKind::kSum);
  spec.learning_rate = 0.1F;
  spec.local_epochs = 3;
  const std::vector<std::size_t> segments = {2};  // segments: ranks 0 and 1, then 2 and 3
  const auto exchanged = [&](std::vector<float> values, std::size_t a, std::size_t b) {
    const auto row = [&](std::size_t j) {
      return values.begin() + static_cast<std::ptrdiff_t>(p.shape().prefix(j).end);
    };
    std::swap_ranges(row(a), row(a) + static_cast<std::ptrdiff_t>(p.shape().row), row(b));
    return values;
  };
  const std::vector<float> plain = p.trained(spec, 4, segments);
  const auto distance = [&](std::size_t a, std::size_t b) {
    Problem turned = Problem();
    turned.parameters = exchanged(p.parameters, a, b);
    const std::vector<float> other = exchanged(turned.trained(spec, 4, segments), a, b);
    double most = 0;
    for (std::size_t i = 0; i < plain.size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(plain[i]) - static_cast<double>(other[i])));
    return most;
  };
  CHECK(distance(0, 1) < 1e-5);
  CHECK(distance(2, 3) < 1e-5);
  CHECK(distance(1, 2) > 1e-3);
}

TEST_CASE("nested ranks: pruning shrinks the last ranks and no others") {
  Problem p;
  p.fill();
  TrainingSpec spec = one_step();
  spec.learning_rate = 0.05F;
  const std::vector<float> plain = p.trained(spec, 4);
  spec.objective = {.kind = "rank_pruning", .lambda = 1, .gamma = 0.5};
  const std::vector<float> pruned = p.trained(spec, 4);
  const std::size_t kept = p.shape().prefix(2).end;
  CHECK(std::equal(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(kept), pruned.begin()));
  const auto tail = [&](const std::vector<float>& values) {
    double sum = 0;
    for (const TailNorms& norms : tail_norms(p.shape(), values, {2, 4})) sum += norms.a * norms.b;
    return sum;
  };
  CHECK(tail(pruned) < 0.98 * tail(plain));
}

TEST_CASE("nested ranks: the energy of some ranks is that of their products, element by element") {
  Problem problem;
  problem.fill();
  const AdapterLayout& shape = problem.shape();
  double slow = 0;
  for (std::size_t j = 1; j < 3; ++j)
    for (const AdaptedMatrix& m : shape.matrices)
      for (std::size_t o = 0; o < m.out; ++o)
        for (std::size_t i = 0; i < m.in; ++i) {
          const auto row = problem.adapter().subspan(j * shape.row, shape.row);
          const double product = static_cast<double>(row[m.b + o]) * static_cast<double>(row[m.a + i]);
          slow += product * product;
        }
  CHECK(energy(shape, problem.parameters, {1, 3}) == doctest::Approx(slow));
  CHECK(energy(shape, problem.parameters, {2, 2}) == 0);
}

TEST_CASE("nested ranks: AdamW counts for each segment of ranks the steps that it took part in") {
  Problem p;
  p.fill();
  TrainingSpec spec = one_step(NestingKind::kSample);
  spec.optimizer = OptimizerKind::kAdamW;
  spec.learning_rate = 0.01F;
  spec.local_steps = 12;
  const std::vector<std::size_t> cuts = {1, 2, kRank};
  const std::vector<float> trained = p.trained(spec, kRank, {1, 2});
  // Slow reference: one rank at a time, each with its own moments and step count.
  Problem slow;
  slow.fill();
  Rng draws = Rng(1).fork("nest");
  const std::size_t row = slow.shape().row;
  std::vector<double> first(kRank * row), second(kRank * row), counts(kRank);
  for (int step = 0; step < 12; ++step) {
    const std::size_t ranks = cuts[draws.below(3)];
    const std::vector<float> gradient = slow.gradient(ranks);
    for (std::size_t j = 0; j < ranks; ++j) {
      counts[j] += 1;
      for (std::size_t i = j * row; i < (j + 1) * row; ++i) {
        const auto g = static_cast<double>(gradient[i]);
        first[i] = 0.9 * first[i] + 0.1 * g;
        second[i] = 0.999 * second[i] + 0.001 * g * g;
        const double m = first[i] / (1 - std::pow(0.9, counts[j]));
        const double v = second[i] / (1 - std::pow(0.999, counts[j]));
        slow.adapter()[i] -= static_cast<float>(0.01 * m / (std::sqrt(v) + 1e-8));
      }
    }
  }
  CHECK(counts[0] == 12);
  CHECK(counts[2] > 0);
  CHECK(counts[2] < counts[1]);
  const auto adapter = std::span(trained).subspan(p.shape().offset);
  for (std::size_t i = 0; i < adapter.size(); ++i)
    CHECK(static_cast<double>(adapter[i]) ==
          doctest::Approx(static_cast<double>(slow.adapter()[i])).epsilon(1e-3).scale(1));
}
