// Clients that keep parameters for themselves, beside steps of gradient descent written from the definitions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "learn/evaluation/evaluate.h"
#include "tests/unit/client/small_work.h"

namespace fedge::client {
namespace {

const std::string kBias = "personal = [\"dense1.bias\"]\n";

// The largest difference between these floats and the values of `w` from `first` on, less those of `from`.
double off(std::span<const float> values, const std::vector<double>& w, const std::vector<double>& from,
           std::size_t first) {
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(values[i]) -
                                     (w[first + i] - (from.empty() ? 0 : from[first + i]))));
  return worst;
}

void step(std::vector<double>& w, const std::vector<double>& gradient, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) w[i] -= kWorkRate * gradient[i];
}

}  // namespace

TEST_CASE("personal: fedper trains both parts together, sends the shared one and keeps the other") {
  const SmallWork keeping(kBias, "");
  CHECK(keeping.shared() == Coverage::of({{0, kWorkWeights}}));
  ClientMemory memory;
  std::vector<double> w = keeping.start();
  for (std::uint32_t round = 1; round <= 3; ++round) {
    // The shared part begins anew from the run's model, the own part goes on.
    const std::vector<double> global = keeping.start();
    std::copy_n(global.begin(), kWorkWeights, w.begin());
    step(w, keeping.gradient(w), 0, w.size());
    const std::vector<float> update = keeping.update(round, memory);
    REQUIRE(update.size() == kWorkWeights);
    CHECK(off(update, w, global, 0) < 1e-7);
    REQUIRE(memory.personal.size() == kWorkClasses);
    CHECK(off(memory.personal, w, {}, kWorkWeights) < 1e-7);
    CHECK(memory.round == RoundNumber(round));
  }
}

TEST_CASE("personal: fedrep trains its own part first, and then the shared one beside it") {
  const SmallWork keeping(kBias, "personal = { kind = \"fedrep\", head_epochs = 4 }\n");
  ClientMemory memory;
  std::vector<double> w = keeping.start();
  for (std::uint32_t round = 1; round <= 2; ++round) {
    const std::vector<double> global = keeping.start();
    std::copy_n(global.begin(), kWorkWeights, w.begin());
    for (int epoch = 0; epoch < 4; ++epoch) step(w, keeping.gradient(w), kWorkWeights, w.size());
    step(w, keeping.gradient(w), 0, kWorkWeights);
    CHECK(off(keeping.update(round, memory), w, global, 0) < 1e-7);
    CHECK(off(memory.personal, w, {}, kWorkWeights) < 1e-7);
  }
}

TEST_CASE(
    "personal: ditto's own model follows its loss and a pull to the shared one, which is trained as ever") {
  const SmallWork keeping("", "personal = { kind = \"ditto\", lambda = 0.5, personal_epochs = 3 }\n");
  const SmallWork plain("", "");
  ClientMemory memory, none;
  std::vector<double> v = keeping.start();
  for (std::uint32_t round = 1; round <= 2; ++round) {
    const std::vector<double> w = keeping.start();
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<double> gradient = keeping.gradient(v);
      for (std::size_t i = 0; i < v.size(); ++i) gradient[i] += 0.5 * (v[i] - w[i]);
      step(v, gradient, 0, v.size());
    }
    const std::vector<float> update = keeping.update(round, memory);
    CHECK(update == plain.update(round, none));  // the bits of FedAvg
    REQUIRE(memory.personal.size() == v.size());
    CHECK(off(memory.personal, v, {}, 0) < 1e-7);
  }
}

TEST_CASE("personal: without epochs of its own, ditto's own model makes as many steps as the shared one") {
  const SmallWork steps("", "local_steps = 4\npersonal = { kind = \"ditto\" }\n");
  const SmallWork epochs("", "local_epochs = 4\npersonal = { kind = \"ditto\" }\n");
  const SmallWork said("", "local_epochs = 1\npersonal = { kind = \"ditto\", personal_epochs = 4 }\n");
  ClientMemory by_steps, by_epochs, by_key;
  steps.update(1, by_steps);
  epochs.update(1, by_epochs);
  said.update(1, by_key);
  CHECK(by_steps.personal == by_epochs.personal);
  CHECK(by_key.personal == by_epochs.personal);
}

TEST_CASE("personal: a trainer program gets the client's own values, and what it makes of them is kept") {
  const SmallWork keeping(kBias, "");
  std::vector<std::vector<float>> seen;
  Elsewhere elsewhere;
  elsewhere.train = [&](const WorkOrder& order, std::span<const float> model,
                        std::span<float> update) -> Result<learn::TrainingResult> {
    CHECK(order.coverage == Coverage::all(model.size()));
    seen.emplace_back(model.begin(), model.end());
    for (std::size_t i = 0; i < update.size(); ++i) update[i] = i < kWorkWeights ? 1.0F : 2.0F;
    return learn::TrainingResult{.samples = SampleCount(8), .steps = 1};
  };
  LocalWork worker(*keeping.task, keeping.spec.compression, kWorkSeed, elsewhere);
  ClientMemory memory;
  std::vector<float> expected = keeping.global;
  for (std::uint32_t round = 1; round <= 3; ++round) {
    const auto result = worker.run(keeping.order(round), keeping.global, memory);
    REQUIRE_MESSAGE(result, result.error().message);
    CHECK(seen.back() == expected);
    CHECK(std::ranges::equal(result->values.span(), std::vector<float>(kWorkWeights, 1.0F)));
    for (std::size_t i = kWorkWeights; i < expected.size(); ++i) expected[i] += 2.0F;
    CHECK(std::ranges::equal(memory.personal, std::span(expected).subspan(kWorkWeights)));
  }
}

TEST_CASE("personal: without a pull, ditto's own model is training alone") {
  SmallWork keeping("", "personal = { kind = \"ditto\", lambda = 0 }\n");
  ClientMemory memory, again;
  keeping.update(1, memory);
  keeping.update(1, again);
  for (float& value : keeping.global) value += 0.25F;  // what others have done
  keeping.update(2, memory);
  const SmallWork unmoved("", "personal = { kind = \"ditto\", lambda = 0 }\n");
  unmoved.update(2, again);
  CHECK(memory.personal == again.personal);
}

TEST_CASE("personal: what stays on the client is refused to whoever asks for it") {
  const SmallWork keeping(kBias, "");
  for (const Coverage& asked :
       {Coverage::all(kWorkWeights + kWorkClasses), Coverage::of({{kWorkWeights + 3, kWorkWeights + 4}}),
        Coverage::of({{0, 5}, {kWorkWeights - 1, kWorkWeights + 1}})}) {
    WorkOrder order = keeping.order(1);
    order.coverage = asked;
    ClientMemory memory;
    const auto result = keeping.run(order, memory);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::kRefused);
    CHECK(memory.personal.empty());
  }
}

TEST_CASE("personal: an evaluation is of the model with the client's own part, beside the shared one") {
  const SmallWork keeping(kBias, "");
  ClientMemory memory;
  std::vector<float> with_own = keeping.global;
  Elsewhere elsewhere;
  std::vector<std::vector<float>> seen;
  elsewhere.train = [](const WorkOrder&, std::span<const float>,
                       std::span<float>) -> Result<learn::TrainingResult> {
    return learn::TrainingResult{.samples = SampleCount(8), .steps = 1};
  };
  elsewhere.evaluate = [&](const WorkOrder&, std::span<const float> model) -> Result<learn::EvaluationSums> {
    seen.emplace_back(model.begin(), model.end());
    learn::EvaluationSums sums({.outputs = kWorkClasses});
    std::vector<float> scores(kWorkClasses);
    scores[0] = 1;
    sums.add(scores, model[kWorkWeights] == 7 ? 0 : 1);  // right with the client's own part alone
    sums.end_client(1);
    return sums;
  };
  const LocalWork worker(*keeping.task, keeping.spec.compression, kWorkSeed, elsewhere);
  WorkOrder order = keeping.order(1);
  order.kind = TaskKind::kEvaluation;
  const auto metrics = [&] {
    const auto answer = worker.answer(order, keeping.global, memory);
    REQUIRE_MESSAGE(answer, answer.error().message);
    const auto sums = learn::EvaluationSums::from({.outputs = kWorkClasses}, answer->sums);
    REQUIRE_MESSAGE(sums, sums.error().message);
    return sums->metrics();
  };
  const auto before = metrics();
  CHECK(before.accuracy == 0);
  CHECK(before.shared_accuracy == 0);
  CHECK(seen.size() == 1);
  memory.personal.assign(kWorkClasses, 7);
  const auto after = metrics();
  CHECK(after.accuracy == 1);
  CHECK(after.shared_accuracy == 0);
  CHECK(*after.shared_loss > after.loss);
  REQUIRE(seen.size() == 3);
  CHECK(seen[1] == keeping.global);
  std::fill(with_own.begin() + kWorkWeights, with_own.end(), 7.0F);
  CHECK(seen[2] == with_own);
  memory.personal.resize(3);
  const auto wrong = worker.answer(order, keeping.global, memory);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ErrorCode::kCorrupt);
}

TEST_CASE("personal: a training that diverges leaves the client's own part as it was") {
  SmallWork keeping(kBias, "");
  ClientMemory memory;
  keeping.update(1, memory);
  const std::vector<float> kept = memory.personal;
  keeping.global[5] = std::numeric_limits<float>::infinity();
  CHECK_FALSE(keeping.run(keeping.order(2), memory));
  CHECK(memory.personal == kept);
  LocalWork hiding(*keeping.task, keeping.spec.compression, kWorkSeed);
  hiding.hide_failures();
  const auto zeros = hiding.run(keeping.order(2), keeping.global, memory);
  REQUIRE(zeros);
  CHECK(zeros->fault);
  CHECK(memory.personal == kept);
}

TEST_CASE("personal: layers that the model has not, and kinds without layers, are refused by key") {
  const auto refused = [](const std::string& model, const std::string& training) {
    const auto document =
        config::parse_toml("[model]\nkind = \"mlp\"\n" + model + "[training]\n" + training, "run.toml");
    REQUIRE(document);
    config::Reader root(document->root, "", document->name);
    const learn::TaskSpec task = learn::read_task(root);
    if (const auto read = root.finish(); !read) return read.error().message;
    const auto made = learn::make_model(task.model, {28, 28, 1}, kWorkClasses);
    return made ? std::string() : made.error().message;
  };
  const auto says = [&](const std::string& model, const std::string& training, const std::string& reason) {
    const std::string message = refused(model, training);
    CHECK_MESSAGE(message.find(reason) != std::string::npos, message);
  };
  CHECK(refused("personal = [\"dense3\"]\n", "") == "");
  CHECK(refused("personal = [\"dense1\", \"dense3.bias\"]\n", "personal = { kind = \"fedrep\" }\n") == "");
  says("personal = [\"dense\"]\n", "", "the model has no layer dense; its last layer is dense3");
  says("personal = [\"dense1\", \"dense2\", \"dense3\"]\n", "",
       "no layer is left that the clients could share");
  says("personal = [\"dense3\"]\nadapter = { rank = 2 }\n", "", "remove model.adapter");
  says("personal = [\"dense3\"]\n", "personal = { kind = \"ditto\" }\n", "must be \"fedper\" or \"fedrep\"");
  says("", "personal = { kind = \"fedper\" }\n", "list them in model.personal");
  says("", "personal = { lambda = 1 }\n", "has no effect without kind = \"ditto\"");
  says("personal = [\"dense3\"]\n", "personal = { head_epochs = 1 }\n",
       "has no effect without kind = \"fedrep\"");
}

}  // namespace fedge::client
