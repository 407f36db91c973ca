// bench_layers: training steps a second of a list of layers, with plain SGD, on one thread and random data.
// Prints the median step in milliseconds, samples a second, and the share of the multiply-adds that the core
// can do. layers.py compares with PyTorch.
//   bench_layers RUN.toml --input 32,32,3 --outputs 10 [--steps 20]      images
//   bench_layers RUN.toml --input 104,6,1 --outputs 5                    arrays
//   bench_layers RUN.toml --tokens 80 --outputs 96                       texts
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "bench/training/peak/peak.h"
#include "core/config/document.h"
#include "core/platform/files.h"
#include "learn/kernels/kernels.h"
#include "learn/model.h"

namespace {

using namespace fedge;
using namespace fedge::learn;

struct Options {
  std::string run;
  std::vector<std::size_t> input = {28, 28, 1};
  std::size_t tokens = 0;
  std::size_t outputs = 10;
  std::size_t steps = 20;
};

// The data of one batch.
struct RandomBatch {
  RandomBatch(const InputShape& input, std::size_t outputs, std::size_t samples) {
    Rng rng(1);
    const std::size_t count = samples * input.width;
    for (std::size_t i = 0; i < (input.tokens ? count : 0); ++i) {
      tokens.push_back(static_cast<Token>(rng.below(outputs)));
      targets.push_back(static_cast<Token>(rng.below(outputs)));
    }
    inputs.resize(input.tokens ? 0 : samples * input.size());
    for (float& value : inputs) value = static_cast<float>(rng.normal());
    for (std::size_t i = 0; i < (input.tokens ? 0 : samples); ++i)
      labels.push_back(static_cast<Label>(rng.below(outputs)));
    batch = {.inputs = inputs, .labels = labels, .tokens = tokens, .targets = targets, .samples = samples};
  }
  std::vector<float> inputs;
  std::vector<Label> labels;
  std::vector<Token> tokens;
  std::vector<Token> targets;
  Batch batch;
};

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The multiply-adds of a step: those of the backward pass as counted, and in the forward pass one for each of
// a weight's gradient. Too few if convolutions skip products of the backward pass.
double products_of(const Workspace& workspace, std::size_t steps) {
  const Products& backward = workspace.products;
  return static_cast<double>(2 * backward.weights + backward.inputs) / static_cast<double>(steps);
}

Result<TaskSpec> read_spec(const std::string& path) {
  FEDGE_TRY(text, read_file(path, 1 << 20));
  FEDGE_TRY(document, config::parse_toml(text, path));
  config::Reader root(document.root, "", path);
  return read_task(root);  // the other sections do not matter here
}

Result<void> run(const Options& options) {
  FEDGE_TRY(spec, read_spec(options.run));
  InputShape input{options.input[0], options.input[1], options.input[2]};
  if (options.tokens > 0) input = {1, options.tokens, 1, true};
  FEDGE_TRY(model, make_model(spec.model, input, options.outputs));
  std::vector<float> parameters(model->layout()->size());
  model->initialise(parameters, Rng(1));
  const RandomBatch data(input, options.outputs, spec.training.batch_size);
  const auto workspace = model->make_workspace(spec.training.batch_size);
  std::vector<double> seconds;
  for (std::size_t step = 0; step < options.steps + 2; ++step) {  // the first two are not counted
    const auto start = std::chrono::steady_clock::now();
    model->sgd_step(parameters, data.batch, 0.01F, 0.0F, *workspace);
    seconds.push_back(since(start));
  }
  seconds.erase(seconds.begin(), seconds.begin() + 2);
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  const double speed = products_of(*workspace, options.steps + 2) / median;
  std::printf("%.2f ms, %.0f samples/s, at least %.1f G multiply-adds/s, %.0f %% of the core's", 1e3 * median,
              static_cast<double>(spec.training.batch_size) / median, speed / 1e9,
              200 * speed / bench::limit_of(kernels().name));
  std::printf(" (%s kernels, %zu parameters)\n", kernels().name, parameters.size());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Training steps a second of a list of layers.");
  app.add_option("run", options.run, "run file with the list")->required();
  app.add_option("--input", options.input, "height, width, channels")->delimiter(',')->expected(3);
  app.add_option("--tokens", options.tokens, "tokens of a sample, instead of --input");
  app.add_option("--outputs", options.outputs, "classes, or tokens of the vocabulary");
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const Result<void> done = run(options);
  if (!done) std::fprintf(stderr, "bench_layers: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
