// bench_language: tokens a second of a language model's training steps, with AdamW, on one thread. Prints the
// median step in milliseconds and tokens a second. `--rank` is the rank of adapters on every linear layer
// or on `--targets`; the rest is then frozen. Prints the peak of resident memory, too. With `--generate`, it
// generates this many tokens instead, the likeliest each time, with weights of float32. language.sh and
// llama.py compare with PyTorch.
//   bench_language [--kind transformer] [--layers 6] [--width 192] [--heads 6] [--kv-heads 0] [--mlp-width 0]
//                  [--context 128] [--batch 16] [--vocabulary 96] [--rank 0] [--steps 10] [--generate 0]
//                  [--targets q v] [--recompute] [--base-dtype float32]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "learn/generate.h"
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
  std::size_t generate = 0;
  bool recompute = false;
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

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Bytes; 0 where the system does not say.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return 1024.0 * std::stod(line.substr(6));
  return 0;
}

int run_generation(const Model& model, std::span<const float> parameters, const Options& options) {
  const std::vector<Token> prompt = {1};
  const auto start = std::chrono::steady_clock::now();
  const std::size_t written =
      generate(model, parameters, prompt, {.tokens = options.generate, .temperature = 0}, Rng(1)).size();
  const double seconds = seconds_since(start);
  std::printf("%.2f ms, %.0f tokens/s generated (%s kernels, %zu parameters)\n",
              1e3 * seconds / static_cast<double>(written), static_cast<double>(written) / seconds,
              kernels().name, model.layout()->size());
  return 0;
}

int run(const Options& options) {
  auto made = make_model(options.model, {1, options.context, 1, true}, options.vocabulary);
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    return 1;
  }
  const Model& model = **made;
  AlignedBuffer<float> buffer(model.layout()->size());
  std::span<float> parameters = buffer.span();
  model.initialise(parameters, Rng(1));
  if (options.generate > 0) return run_generation(model, parameters, options);
  std::optional<CompactWeights> base;
  if (options.model.base_dtype != BaseDtype::kFloat32) {
    round_base(*model.layout(), options.model.base_dtype, parameters);
    base.emplace(model.layout(), options.model.base_dtype);
    if (!base->add(0, parameters)) return 1;
    // A client has only the rest as float32: it reads the base in chunks.
    AlignedBuffer<float> rest(model.layout()->size(), Pages::kSmall);
    for (const TensorInfo& tensor : model.layout()->tensors())
      if (!CompactWeights::holds(tensor))
        std::copy_n(parameters.data() + tensor.offset, tensor.size, rest.data() + tensor.offset);
    buffer = std::move(rest);
    parameters = buffer.span();
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak of memory begins anew
  }
  TrainingSpec spec;
  spec.optimizer = OptimizerKind::kAdamW;
  spec.learning_rate = 1e-3F;
  spec.batch_size = options.batch;
  spec.recompute = options.recompute;
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
  std::span<float> trained = parameters;
  if (model.reads_apart()) {  // as learn/task.cc does
    trained = trainer.scratch();
    const std::size_t begin = moved.ranges().front().begin;
    std::ranges::copy(std::span(parameters).subspan(begin), trained.subspan(begin).begin());
    training.frozen = parameters.data();
    training.base = base ? &*base : nullptr;
  }
  trainer.train(trained, data, samples, Rng(2), training);
  seconds.erase(seconds.begin(), seconds.begin() + 2);
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  std::printf("%.1f ms, %.0f tokens/s (%s kernels, %zu parameters, %zu trained)\n", 1e3 * median,
              static_cast<double>(options.batch * options.context) / median, kernels().name,
              model.layout()->size(), moved.count());
  const double peak = peak_memory();
  std::printf("peak memory %.0f MB, %.2f times the weights\n", 1e-6 * peak,
              peak / static_cast<double>(sizeof(float) * model.layout()->size()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.model = {.kind = "transformer", .language = {.layers = 6, .width = 192, .heads = 6}};
  CLI::App app("Tokens a second of a transformer's training steps.");
  app.add_option("--kind", options.model.kind);
  app.add_option("--kv-heads", options.model.language.kv_heads);
  app.add_option("--mlp-width", options.model.language.mlp_width);
  app.add_option("--generate", options.generate);
  app.add_option("--layers", options.model.language.layers);
  app.add_option("--width", options.model.language.width);
  app.add_option("--heads", options.model.language.heads);
  app.add_option("--context", options.context);
  app.add_option("--batch", options.batch);
  app.add_option("--vocabulary", options.vocabulary);
  app.add_option("--rank", options.model.adapter.rank);
  app.add_option("--targets", options.model.adapter.targets, "matrices with adapters; all by default");
  std::string dtype = base_dtype_names().front();
  app.add_option("--base-dtype", dtype)->check(CLI::IsMember(base_dtype_names()));
  app.add_flag("--recompute", options.recompute);
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  options.model.base_dtype =
      static_cast<BaseDtype>(std::ranges::find(base_dtype_names(), dtype) - base_dtype_names().begin());
  return run(options);
}
