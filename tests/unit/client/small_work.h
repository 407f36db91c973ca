// A client of a small run beside gradient descent in double precision: softmax regression on the tiny data
// set.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/local/local_work.h"
#include "core/config/document.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {

inline constexpr std::uint64_t kWorkSeed = 3;
inline constexpr double kWorkRate = 0.05;
inline constexpr std::size_t kWorkInputs = 784;
inline constexpr std::size_t kWorkClasses = 10;
inline constexpr std::size_t kWorkWeights = kWorkInputs * kWorkClasses;

// Softmax regression on the tiny data set, five clients of eight samples, in one step of all samples an
// epoch.
struct SmallWork {
  explicit SmallWork(const std::string& model, const std::string& training,
                     const std::string& optimizer = "") {
    test::write_tiny_dataset(data);
    const auto document = config::parse_toml(
        "[data]\ndirectory = \"" + data.path().string() + "\"\npartition = { clients = 5 }\n" +
            "[model]\nkind = \"softmax\"\n" + model +
            "[training]\nbatch_size = 8\noptimizer = { kind = \"sgd\", learning_rate = 0.05" + optimizer +
            " }\n" + training,
        "test.toml");
    REQUIRE(document);
    config::Reader root(document->root, "", "test.toml");
    spec = read_work(root);
    const auto finished = root.finish();
    REQUIRE_MESSAGE(finished, finished.error().message);
    build();
  }
  // Again, after a change of `spec`.
  void build() {
    auto built = learn::Task::build(spec.task, kWorkSeed);
    REQUIRE_MESSAGE(built, built.error().message);
    task = *built;
    global.resize(task->model().layout()->size());
    task->model().initialise(global, Rng(kWorkSeed).fork("model"));
  }
  Coverage shared() const { return task->model().layout()->trainable(); }
  WorkOrder order(std::uint32_t round, std::uint32_t client = 2) const {
    return {.client = ClientId(client), .round = RoundNumber(round), .coverage = shared(), .stop = {}};
  }
  Result<WorkResult> run(const WorkOrder& order, ClientMemory& memory) const {
    LocalWork worker(*task, spec.compression, kWorkSeed);
    return worker.run(order, global, memory);
  }
  std::vector<float> update(std::uint32_t round, ClientMemory& memory) const {
    const auto result = run(order(round), memory);
    REQUIRE_MESSAGE(result, result.error().message);
    return {result->values.span().begin(), result->values.span().end()};
  }

  // The gradient of a client's mean loss, in double precision.
  std::vector<double> gradient(const std::vector<double>& w, std::uint32_t client = 2) const {
    const auto samples = task->samples_of(ClientId(client));
    std::vector<double> g(w.size());
    for (const std::uint32_t sample : samples) {
      const float* x = task->data().floats.data() + std::size_t{sample} * kWorkInputs;
      std::vector<double> p(kWorkClasses);
      double total = 0;
      for (std::size_t k = 0; k < kWorkClasses; ++k) {
        double score = w[kWorkWeights + k];
        for (std::size_t i = 0; i < kWorkInputs; ++i)
          score += w[k * kWorkInputs + i] * static_cast<double>(x[i]);
        total += p[k] = std::exp(score);
      }
      for (std::size_t k = 0; k < kWorkClasses; ++k) {
        const double slope =
            (p[k] / total - (task->data().labels[sample] == k ? 1 : 0)) / static_cast<double>(samples.size());
        g[kWorkWeights + k] += slope;
        for (std::size_t i = 0; i < kWorkInputs; ++i)
          g[k * kWorkInputs + i] += slope * static_cast<double>(x[i]);
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

}  // namespace fedge::client
