// bench_language: tokens a second of a transformer's training steps, with AdamW, on one thread. Prints the
// median step in milliseconds and tokens a second. `--rank` is the rank of adapters on every linear layer;
// the rest is then frozen. language.sh compares with PyTorch.
//   bench_language [--layers 6] [--width 192] [--heads 6] [--context 128] [--batch 16] [--vocabulary 96]
//                  [--rank 0] [--steps 10]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "learn/kernels/kernels.h"
#include "learn/model.h"
#include "learn/trainer.h"

namespace {

using namespace fedge;
using namespace fedge::learn;

struct Options {
  ModelSpec model;
  std::size_t context = 128;
  std::size_t batch = 16;
  std::size_t vocabulary = 96;
  std::size_t steps = 10;
};

Dataset random_text(const Options& options) {
  Dataset data{.shape = {1, options.context, 1, true}, .classes = 1, .floats = {}, .labels = {}};
  data.text.vocabulary = options.vocabulary;
  Rng rng(1);
  for (std::size_t i = 0; i <= options.batch * options.context; ++i)
    data.text.tokens.push_back(static_cast<Token>(rng.below(options.vocabulary)));
  for (std::size_t i = 0; i < options.batch; ++i) {
    data.text.windows.push_back(
        {static_cast<std::uint32_t>(i * options.context), static_cast<std::uint32_t>(options.context)});
    data.labels.push_back(0);
  }
  return data;
}

int run(const Options& options) {
  auto made = make_model(options.model, {1, options.context, 1, true}, options.vocabulary);
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    return 1;
  }
  const Model& model = **made;
  std::vector<float> parameters(model.layout()->size());
  model.initialise(parameters, Rng(1));
  TrainingSpec spec;
  spec.optimizer = OptimizerKind::kAdamW;
  spec.learning_rate = 1e-3F;
  spec.batch_size = options.batch;
  spec.local_steps = options.steps + 2;  // the first two are not counted
  const Dataset data = random_text(options);
  std::vector<std::uint32_t> samples(options.batch);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::uint32_t>(i);
  Coverage moved = Coverage::all(model.layout()->size());
  if (options.model.adapter.rank > 0) {
    const TensorInfo& adapter = model.layout()->tensors().back();
    moved = Coverage::of({{adapter.offset, adapter.offset + adapter.size}});
  }
  std::vector<double> seconds;
  auto last = std::chrono::steady_clock::now();
  TrainingOptions training{.coverage = &moved};
  training.report = [&](std::uint64_t, float) {
    const auto now = std::chrono::steady_clock::now();
    seconds.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  };
  Trainer trainer(model, spec);
  trainer.train(parameters, data, samples, Rng(2), training);
  seconds.erase(seconds.begin(), seconds.begin() + 2);
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  std::printf("%.1f ms, %.0f tokens/s (%s kernels, %zu parameters, %zu trained)\n", 1e3 * median,
              static_cast<double>(options.batch * options.context) / median, kernels().name,
              model.layout()->size(), moved.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.model = {.kind = "transformer", .layers = 6, .width = 192, .heads = 6};
  CLI::App app("Tokens a second of a transformer's training steps.");
  app.add_option("--layers", options.model.layers);
  app.add_option("--width", options.model.width);
  app.add_option("--heads", options.model.heads);
  app.add_option("--context", options.context);
  app.add_option("--batch", options.batch);
  app.add_option("--vocabulary", options.vocabulary);
  app.add_option("--rank", options.model.adapter.rank);
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
