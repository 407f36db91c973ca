#include "bench/training/workload.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "aggregation/samplers/uniform.h"
#include "core/platform/files.h"
#include "core/rng.h"

namespace fedge::bench {
namespace {

constexpr std::size_t kClients = 1000;
constexpr std::size_t kSamplesPerClient = 60;

std::vector<std::vector<ClientId>> select_clients(const WorkloadOptions& options, const Rng& rng) {
  std::vector<aggregation::Candidate> candidates;
  for (std::uint32_t client = 0; client < kClients; ++client)
    candidates.push_back({ClientId(client), SampleCount(kSamplesPerClient)});
  aggregation::UniformSampler sampler;
  std::vector<std::vector<ClientId>> rounds;
  for (std::uint32_t round = 1; round <= options.rounds; ++round) {
    rounds.emplace_back();
    for (const auto& choice : sampler.select(
             {RoundNumber(round), candidates, options.clients_per_round, rng.fork("bench select", round)}))
      rounds.back().push_back(choice.client);
  }
  return rounds;
}

}  // namespace

Result<Workload> make_workload(const WorkloadOptions& options) {
  if (options.model != "softmax" && options.model != "mlp" && options.model != "cnn")
    return invalid("model \"" + options.model + "\" is not known, expected softmax, mlp or cnn");
  learn::TaskSpec spec;
  spec.data.partition.kind = learn::PartitionKind::kDirichlet;
  spec.data.partition.clients = kClients;
  spec.data.partition.alpha = 0.1;
  spec.data.partition.samples_per_client = kSamplesPerClient;
  spec.model.kind = options.model;
  spec.training.learning_rate = 0.05F;
  spec.training.batch_size = options.batch;
  Workload workload;
  FEDGE_TRY(task, learn::Task::build(spec, options.seed));
  workload.task = std::move(task);
  workload.initial.resize(workload.task->model().layout()->size());
  const Rng rng(options.seed);
  workload.task->model().initialise(workload.initial, rng);
  workload.rounds = select_clients(options, rng);
  workload.seed = options.seed;
  return workload;
}

Result<void> write_workload(const Workload& workload, const std::filesystem::path& path) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<std::uint32_t> words;
  const auto number = [&](std::size_t value) { words.push_back(static_cast<std::uint32_t>(value)); };
  number(workload.initial.size());
  number(workload.rounds.size());
  number(workload.rounds.empty() ? 0 : workload.rounds.front().size());
  number(workload.task->spec().training.batch_size);
  for (const float weight : workload.initial) words.push_back(std::bit_cast<std::uint32_t>(weight));
  number(workload.task->clients());
  for (std::uint32_t client = 0; client < workload.task->clients(); ++client) {
    const auto samples = workload.task->samples_of(ClientId(client));
    number(samples.size());
    words.insert(words.end(), samples.begin(), samples.end());
  }
  for (std::size_t round = 0; round < workload.rounds.size(); ++round)
    for (const ClientId client : workload.rounds[round]) {
      // Shuffles as Task::train and Trainer::train do; the only epoch has number 0.
      const auto samples = workload.task->samples_of(client);
      std::vector<std::uint32_t> order(samples.begin(), samples.end());
      Rng stream = Rng(workload.seed).fork("train", round + 1, client.value()).fork("epoch", 0);
      stream.shuffle(std::span(order));
      number(client.value());
      number(order.size());
      words.insert(words.end(), order.begin(), order.end());
    }
  return write_file_atomic(path, std::as_bytes(std::span(words)));
}

}  // namespace fedge::bench
