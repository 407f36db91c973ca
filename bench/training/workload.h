// The workload that Fedge and PyTorch both train: 1,000 clients with 60 Fashion-MNIST samples each, labels
// mixed by Dirichlet(0.1), 50 clients a round, one local epoch of plain SGD at 0.05. One file carries
// everything random: both train the same batches from the same initial weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "learn/task.h"

namespace fedge::bench {

struct WorkloadOptions {
  std::string model = "mlp";  // softmax, mlp (784-200-200-10) or cnn (McMahan et al. 2017)
  std::size_t batch = 10;
  std::size_t rounds = 10;
  std::size_t clients_per_round = 50;
  std::uint64_t seed = 42;
};

struct Workload {
  std::shared_ptr<const learn::Task> task;
  std::vector<float> initial;
  std::vector<std::vector<ClientId>> rounds;  // the cohort of each round
  std::uint64_t seed = 0;
};

Result<Workload> make_workload(const WorkloadOptions& options);

// Writes the workload for torch_loop.py, in little-endian 32-bit words:
//   parameters, rounds, clients in a round, batch; the initial parameters as float32;
//   the partition: the number of clients, then for each its number of samples and the samples;
//   for each round and each client in it: client, number of samples, the samples in training order.
Result<void> write_workload(const Workload& workload, const std::filesystem::path& path);

}  // namespace fedge::bench
