// Clients that keep parameters for themselves, beside steps of gradient descent written from the definitions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "client/local_work.h"
#include "core/config/document.h"
#include "learn/evaluation/evaluate.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

constexpr std::uint64_t kPersonalSeed = 3;
constexpr double kPersonalRate = 0.05;
constexpr std::size_t kInputs = 784;
constexpr std::size_t kClasses = 10;
constexpr std::size_t kWeights = kInputs * kClasses;

// Softmax regression on the tiny data set, five clients of eight samples, in one step of all samples an
// epoch.
struct Keeping {
  explicit Keeping(const std::string& model, const std::string& training) {
    test::write_tiny_dataset(data);
    const auto document = config::parse_toml(
        "[data]\ndirectory = \"" + data.path().string() + "\"\npartition = { clients = 5 }\n" +
            "[model]\nkind = \"softmax\"\n" + model +
            "[training]\nbatch_size = 8\noptimizer = { kind = \"sgd\", learning_rate = 0.05 }\n" + training,
        "test.toml");
    REQUIRE(document);
    config::Reader root(document->root, "", "test.toml");
    spec = read_work(root);
    const auto finished = root.finish();
    REQUIRE_MESSAGE(finished, finished.error().message);
    auto built = learn::Task::build(spec.task, kPersonalSeed);
    REQUIRE_MESSAGE(built, built.error().message);
    task = *built;
    global.resize(task->model().layout()->size());
    task->model().initialise(global, Rng(kPersonalSeed).fork("model"));
  }
  Coverage shared() const { return task->model().layout()->trainable(); }
  WorkOrder order(std::uint32_t round) const {
    return {.client = ClientId(2), .round = RoundNumber(round), .coverage = shared(), .stop = {}};
  }
  Result<WorkResult> run(const WorkOrder& order, ClientMemory& memory) const {
    LocalWork worker(*task, spec.compression, kPersonalSeed);
    return worker.run(order, global, memory);
  }
  std::vector<float> update(std::uint32_t round, ClientMemory& memory) const {
    const auto result = run(order(round), memory);
    REQUIRE_MESSAGE(result, result.error().message);
    return {result->values.span().begin(), result->values.span().end()};
  }

  // The gradient of client 2's mean loss, in double precision.
  std::vector<double> gradient(const std::vector<double>& w) const {
    const auto samples = task->samples_of(ClientId(2));
    std::vector<double> g(w.size());
    for (const std::uint32_t sample : samples) {
      const float* x = task->data().floats.data() + std::size_t{sample} * kInputs;
      std::vector<double> p(kClasses);
      double total = 0;
      for (std::size_t k = 0; k < kClasses; ++k) {
        double score = w[kWeights + k];
        for (std::size_t i = 0; i < kInputs; ++i) score += w[k * kInputs + i] * static_cast<double>(x[i]);
        total += p[k] = std::exp(score);
      }
      for (std::size_t k = 0; k < kClasses; ++k) {
        const double slope =
            (p[k] / total - (task->data().labels[sample] == k ? 1 : 0)) / static_cast<double>(samples.size());
        g[kWeights + k] += slope;
        for (std::size_t i = 0; i < kInputs; ++i) g[k * kInputs + i] += slope * static_cast<double>(x[i]);
      }
    }
    return g;
  }
  std::vector<double> start() const { return {global.begin(), global.end()}; }

  test::TemporaryDirectory data;
  WorkSpec spec;
  std::shared_ptr<const learn::Task> task;
  std::vector<float> global;
};

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
  for (std::size_t i = first; i < last; ++i) w[i] -= kPersonalRate * gradient[i];
}

}  // namespace

TEST_CASE("personal: fedper trains both parts together, sends the shared one and keeps the other") {
  const Keeping keeping(kBias, "");
  CHECK(keeping.shared() == Coverage::of({{0, kWeights}}));
  ClientMemory memory;
  std::vector<double> w = keeping.start();
  for (std::uint32_t round = 1; round <= 3; ++round) {
    // The shared part begins anew from the run's model, the own part goes on.
    const std::vector<double> global = keeping.start();
    std::copy_n(global.begin(), kWeights, w.begin());
    step(w, keeping.gradient(w), 0, w.size());
    const std::vector<float> update = keeping.update(round, memory);
    REQUIRE(update.size() == kWeights);
    CHECK(off(update, w, global, 0) < 1e-7);
    REQUIRE(memory.personal.size() == kClasses);
    CHECK(off(memory.personal, w, {}, kWeights) < 1e-7);
    CHECK(memory.round == RoundNumber(round));
  }
}

TEST_CASE("personal: fedrep trains its own part first, and then the shared one beside it") {
  const Keeping keeping(kBias, "personal = { kind = \"fedrep\", head_epochs = 4 }\n");
  ClientMemory memory;
  std::vector<double> w = keeping.start();
  for (std::uint32_t round = 1; round <= 2; ++round) {
    const std::vector<double> global = keeping.start();
    std::copy_n(global.begin(), kWeights, w.begin());
    for (int epoch = 0; epoch < 4; ++epoch) step(w, keeping.gradient(w), kWeights, w.size());
    step(w, keeping.gradient(w), 0, kWeights);
    CHECK(off(keeping.update(round, memory), w, global, 0) < 1e-7);
    CHECK(off(memory.personal, w, {}, kWeights) < 1e-7);
  }
}

TEST_CASE(
    "personal: ditto's own model follows its loss and a pull to the shared one, which is trained as ever") {
  const Keeping keeping("", "personal = { kind = \"ditto\", lambda = 0.5, personal_epochs = 3 }\n");
  const Keeping plain("", "");
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
  const Keeping steps("", "local_steps = 4\npersonal = { kind = \"ditto\" }\n");
  const Keeping epochs("", "local_epochs = 4\npersonal = { kind = \"ditto\" }\n");
  const Keeping said("", "local_epochs = 1\npersonal = { kind = \"ditto\", personal_epochs = 4 }\n");
  ClientMemory by_steps, by_epochs, by_key;
  steps.update(1, by_steps);
  epochs.update(1, by_epochs);
  said.update(1, by_key);
  CHECK(by_steps.personal == by_epochs.personal);
  CHECK(by_key.personal == by_epochs.personal);
}

TEST_CASE("personal: a trainer program gets the client's own values, and what it makes of them is kept") {
  const Keeping keeping(kBias, "");
  std::vector<std::vector<float>> seen;
  Elsewhere elsewhere;
  elsewhere.train = [&](const WorkOrder& order, std::span<const float> model,
                        std::span<float> update) -> Result<learn::TrainingResult> {
    CHECK(order.coverage == Coverage::all(model.size()));
    seen.emplace_back(model.begin(), model.end());
    for (std::size_t i = 0; i < update.size(); ++i) update[i] = i < kWeights ? 1.0F : 2.0F;
    return learn::TrainingResult{.samples = SampleCount(8), .steps = 1};
  };
  LocalWork worker(*keeping.task, keeping.spec.compression, kPersonalSeed, elsewhere);
  ClientMemory memory;
  std::vector<float> expected = keeping.global;
  for (std::uint32_t round = 1; round <= 3; ++round) {
    const auto result = worker.run(keeping.order(round), keeping.global, memory);
    REQUIRE_MESSAGE(result, result.error().message);
    CHECK(seen.back() == expected);
    CHECK(std::ranges::equal(result->values.span(), std::vector<float>(kWeights, 1.0F)));
    for (std::size_t i = kWeights; i < expected.size(); ++i) expected[i] += 2.0F;
    CHECK(std::ranges::equal(memory.personal, std::span(expected).subspan(kWeights)));
  }
}

TEST_CASE("personal: without a pull, ditto's own model is training alone") {
  Keeping keeping("", "personal = { kind = \"ditto\", lambda = 0 }\n");
  ClientMemory memory, again;
  keeping.update(1, memory);
  keeping.update(1, again);
  for (float& value : keeping.global) value += 0.25F;  // what others have done
  keeping.update(2, memory);
  const Keeping unmoved("", "personal = { kind = \"ditto\", lambda = 0 }\n");
  unmoved.update(2, again);
  CHECK(memory.personal == again.personal);
}

TEST_CASE("personal: what stays on the client is refused to whoever asks for it") {
  const Keeping keeping(kBias, "");
  for (const Coverage& asked :
       {Coverage::all(kWeights + kClasses), Coverage::of({{kWeights + 3, kWeights + 4}}),
        Coverage::of({{0, 5}, {kWeights - 1, kWeights + 1}})}) {
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
  const Keeping keeping(kBias, "");
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
    learn::EvaluationSums sums({.outputs = kClasses});
    std::vector<float> scores(kClasses);
    scores[0] = 1;
    sums.add(scores, model[kWeights] == 7 ? 0 : 1);  // right with the client's own part alone
    sums.end_client(1);
    return sums;
  };
  const LocalWork worker(*keeping.task, keeping.spec.compression, kPersonalSeed, elsewhere);
  WorkOrder order = keeping.order(1);
  order.kind = TaskKind::kEvaluation;
  const auto metrics = [&] {
    const auto answer = worker.answer(order, keeping.global, memory);
    REQUIRE_MESSAGE(answer, answer.error().message);
    const auto sums = learn::EvaluationSums::from({.outputs = kClasses}, answer->sums);
    REQUIRE_MESSAGE(sums, sums.error().message);
    return sums->metrics();
  };
  const auto before = metrics();
  CHECK(before.accuracy == 0);
  CHECK(before.shared_accuracy == 0);
  CHECK(seen.size() == 1);
  memory.personal.assign(kClasses, 7);
  const auto after = metrics();
  CHECK(after.accuracy == 1);
  CHECK(after.shared_accuracy == 0);
  CHECK(*after.shared_loss > after.loss);
  REQUIRE(seen.size() == 3);
  CHECK(seen[1] == keeping.global);
  std::fill(with_own.begin() + kWeights, with_own.end(), 7.0F);
  CHECK(seen[2] == with_own);
  memory.personal.resize(3);
  const auto wrong = worker.answer(order, keeping.global, memory);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ErrorCode::kCorrupt);
}

TEST_CASE("personal: a training that diverges leaves the client's own part as it was") {
  Keeping keeping(kBias, "");
  ClientMemory memory;
  keeping.update(1, memory);
  const std::vector<float> kept = memory.personal;
  keeping.global[5] = std::numeric_limits<float>::infinity();
  CHECK_FALSE(keeping.run(keeping.order(2), memory));
  CHECK(memory.personal == kept);
  LocalWork hiding(*keeping.task, keeping.spec.compression, kPersonalSeed);
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
    const auto made = learn::make_model(task.model, {28, 28, 1}, kClasses);
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
