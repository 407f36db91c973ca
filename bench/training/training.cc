// Client trainings per second: 1,000 clients with 60 Fashion-MNIST samples each (label mix
// Dirichlet(0.1)), 50 of them a round, one local epoch of plain SGD from the round's weights, averaged
// by samples. A round's time runs from its weights to the sum of all updates; evaluation is not in it.
//   bench_training write DIR ROUNDS                     what torch_loop.py needs to train the same batches
//   bench_training run MODEL BATCH ROUNDS EVERY [THREADS]   MODEL: softmax, mlp or cnn; test accuracy every
//                                                           EVERY rounds, 0 for none
// Timings are of the machine; everything else depends on the constants below alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/platform/thread_pool.h"
#include "learn/evaluate.h"
#include "learn/partition.h"
#include "learn/trainer.h"

namespace {

using namespace fedge;
using namespace fedge::learn;

constexpr std::uint64_t kSeed = 42;
constexpr std::size_t kClients = 1000;
constexpr std::size_t kSamples = 60;  // of each client
constexpr std::size_t kChosen = 50;   // clients a round
constexpr float kLearningRate = 0.05F;
constexpr const char* kModels[] = {"softmax", "mlp", "cnn"};

template <class T>
T unwrap(Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "bench_training: %s\n", result.error().message.c_str());
  std::exit(1);
}

DataSpec data_spec() {
  DataSpec spec;
  spec.partition.kind = PartitionKind::kDirichlet;
  spec.partition.alpha = 0.1;
  spec.partition.clients = kClients;
  spec.partition.samples_per_client = kSamples;
  return spec;
}

std::unique_ptr<Model> build_model(const std::string& name, const Dataset& data) {
  ModelSpec spec;  // the defaults are the sizes wanted here
  spec.kind = name == "softmax" ? ModelKind::kSoftmax : name == "mlp" ? ModelKind::kMlp : ModelKind::kCnn;
  return unwrap(make_model(spec, data.shape, data.classes));
}

ParameterVector initial_weights(const Model& model) {
  ParameterVector weights(model.layout());
  model.initialise(weights.values(), Rng(kSeed));
  return weights;
}

std::vector<std::uint32_t> chosen_clients(std::size_t round) {
  std::vector<std::uint32_t> clients(kClients);
  std::iota(clients.begin(), clients.end(), 0U);
  Rng rng = Rng(kSeed).fork("clients", round);
  rng.shuffle(std::span(clients));
  clients.resize(kChosen);
  return clients;
}

Rng training_stream(std::size_t round, std::uint32_t client) {
  return Rng(kSeed).fork("train", round, client);
}

template <class T>
void write_file(const std::filesystem::path& path, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (file.flush()) return;
  std::fprintf(stderr, "bench_training: cannot write %s\n", path.c_str());
  std::exit(1);
}

// order.u32: rounds x clients x samples, as the trainer shuffles them (learn/trainer.h); MODEL.f32: the
// initial weights. Both in the machine's byte order.
int write_workload(const std::filesystem::path& directory, std::size_t rounds) {
  const DataSpec spec = data_spec();
  const auto data = unwrap(load_train(spec));
  const Partition parts = unwrap(partition(spec.partition, data->labels, data->classes, Rng(kSeed)));
  std::vector<std::uint32_t> order;
  for (std::size_t round = 1; round <= rounds; ++round)
    for (const std::uint32_t client : chosen_clients(round)) {
      const auto samples = parts.of(client);
      order.insert(order.end(), samples.begin(), samples.end());
      Rng rng = training_stream(round, client).fork("epoch", 0);
      rng.shuffle(std::span(order).last(samples.size()));
    }
  write_file<std::uint32_t>(directory / "order.u32", order);
  for (const std::string name : kModels)
    write_file<float>(directory / (name + ".f32"), initial_weights(*build_model(name, *data)).values());
  return 0;
}

// One thread's share of a round: every `threads`-th client, the updates summed.
struct Worker {
  Worker(const Model& model, const TrainingSpec& spec)
      : trainer(model, spec), update(model.layout()->size()), sum(model.layout()->size()) {}

  void add(const Dataset& data, std::span<const std::uint32_t> samples, std::span<const float> global,
           const Rng& rng) {
    std::copy(global.begin(), global.end(), update.data());
    trainer.train(update.span(), data, samples, rng);
    float* total = sum.data();
    const float* trained = update.data();
    for (std::size_t i = 0; i < global.size(); ++i) total[i] += trained[i] - global[i];
  }

  Trainer trainer;
  AlignedBuffer<float> update;
  AlignedBuffer<float> sum;
};

struct Options {
  std::string model;
  std::size_t batch;
  std::size_t rounds;
  std::size_t every;
  std::size_t threads;
};

int run(const Options& options) {
  const DataSpec spec = data_spec();
  const auto data = unwrap(load_train(spec));
  const auto test = unwrap(load_test(spec));
  const Partition parts = unwrap(partition(spec.partition, data->labels, data->classes, Rng(kSeed)));
  const auto model = build_model(options.model, *data);
  TrainingSpec training;
  training.learning_rate = kLearningRate;
  training.batch_size = options.batch;
  ThreadPool pool(options.threads);
  std::vector<Worker> workers;
  for (std::size_t t = 0; t < options.threads; ++t) workers.emplace_back(*model, training);
  ParameterVector weights = initial_weights(*model);

  std::vector<double> seconds;
  for (std::size_t round = 1; round <= options.rounds; ++round) {
    const auto clients = chosen_clients(round);
    const auto start = std::chrono::steady_clock::now();
    pool.for_each(options.threads, [&](std::size_t t) {
      std::fill_n(workers[t].sum.data(), weights.size(), 0.0F);
      for (std::size_t i = t; i < kChosen; i += options.threads)
        workers[t].add(*data, parts.of(clients[i]), weights.values(), training_stream(round, clients[i]));
    });
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    for (const Worker& worker : workers)
      for (std::size_t i = 0; i < weights.size(); ++i)
        weights.values()[i] += worker.sum.data()[i] / static_cast<float>(kChosen);
    if (options.every == 0 || round % options.every != 0) continue;
    const Evaluation result = evaluate(*model, weights.values(), *test, pool);
    std::printf("curve fedge %s %zu round %zu accuracy %.4f loss %.4f\n", options.model.c_str(),
                options.batch, round, result.accuracy, result.loss);
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("speed fedge %s %zu best %.1f median %.1f\n", options.model.c_str(), options.batch,
              kChosen / seconds.front(), kChosen / seconds[seconds.size() / 2]);
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: bench_training write DIR ROUNDS\n"
               "       bench_training run softmax|mlp|cnn BATCH ROUNDS EVERY [THREADS]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto number = [&](std::size_t i) { return std::strtoul(arguments[i].c_str(), nullptr, 10); };
  if (arguments.size() == 3 && arguments[0] == "write" && number(2) > 0)
    return write_workload(arguments[1], number(2));
  if (arguments.size() < 5 || arguments.size() > 6 || arguments[0] != "run") return usage();
  const Options options{arguments[1], number(2), number(3), number(4), arguments.size() == 6 ? number(5) : 2};
  const bool known = std::find(std::begin(kModels), std::end(kModels), options.model) != std::end(kModels);
  if (!known || options.batch == 0 || options.rounds == 0 || options.threads == 0) return usage();
  return run(options);
}
