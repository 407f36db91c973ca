// Training of adapters whose frozen parameters are read elsewhere: the same bits as with all in one vector.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/unit/learn/split/split_fixture.h"

using namespace fedge;
using namespace fedge::learn;
using fedge::learn::test::SplitProblem;

namespace {

TrainingSpec few_steps(OptimizerKind optimizer) {
  TrainingSpec spec;
  spec.batch_size = 6;
  spec.optimizer = optimizer;
  spec.learning_rate = 0.01F;
  spec.momentum = optimizer == OptimizerKind::kSgd ? 0.9F : 0.0F;
  spec.weight_decay = 0.01F;
  spec.objective.kind = "proximal";
  spec.objective.mu = 0.1F;
  return spec;
}

bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

TEST_CASE("frozen parameters: training reads them where it is told, and only the adapters from the others") {
  for (const bool llama : {false, true})
    for (const OptimizerKind optimizer : {OptimizerKind::kSgd, OptimizerKind::kAdamW}) {
      CAPTURE(llama);
      const SplitProblem problem(llama);
      REQUIRE(problem.model->reads_apart());
      const std::size_t offset = problem.model->adapters()->offset();
      const Coverage moved = problem.adapters();
      Trainer trainer(*problem.model, few_steps(optimizer));
      std::vector<float> together = problem.parameters;
      const auto expected =
          trainer.train(together, problem.data, problem.samples, Rng(2), {.coverage = &moved});
      CHECK_FALSE(equal_bits(together, problem.parameters));

      std::vector<float> apart = problem.parameters;
      for (float& value : std::span(apart).first(offset)) value = std::numeric_limits<float>::quiet_NaN();
      const auto result = trainer.train(apart, problem.data, problem.samples, Rng(2),
                                        {.coverage = &moved, .frozen = problem.parameters.data()});
      CHECK(result.mean_loss == expected.mean_loss);
      CHECK(equal_bits(std::span(apart).subspan(offset), std::span(together).subspan(offset)));
      CHECK(std::isnan(apart[offset - 1]));
      // A later training of the same trainer has all in one vector again.
      std::vector<float> again = problem.parameters;
      trainer.train(again, problem.data, problem.samples, Rng(2), {.coverage = &moved});
      CHECK(equal_bits(again, together));
    }
}

TEST_CASE("frozen parameters: without adapters nothing is frozen, and nothing is read elsewhere") {
  ModelSpec spec = learn::test::split_model(true);
  spec.adapter.rank = 0;
  const auto model =
      make_model(spec, {1, learn::test::kSplitContext, 1, true}, learn::test::kSplitVocabulary);
  REQUIRE(model);
  CHECK_FALSE((*model)->reads_apart());
}
