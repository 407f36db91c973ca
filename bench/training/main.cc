// bench_training: how many clients a second local training serves.
//   bench_training [--model mlp] [--batch 10] [--rounds 10] [--threads 2]   trains and prints
//   bench_training ... --export FILE    writes the workload for another program instead
//   bench_training ... --commands       obeys lines on standard input: "train" trains a round and
//                                       prints its seconds and the processor's, "evaluate" prints
//                                       accuracy and loss
//   bench_training --kernels            GFLOP/s of the kernels
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "bench/training/federation.h"
#include "bench/training/kernel_speed.h"
#include "core/platform/thread_pool.h"
#include "learn/kernels/kernels.h"

namespace {

using namespace fedge;

struct Options {
  bench::WorkloadOptions workload;
  std::size_t threads = 2;
  std::string file;
  bool commands = false;
};

struct Taken {
  double seconds;
  double processor_seconds;  // of all threads; other programs change it little
};

Result<Taken> timed_round(bench::Federation& federation) {
  const std::clock_t processor = std::clock();
  const auto start = std::chrono::steady_clock::now();
  FEDGE_TRY_VOID(federation.train_round());
  return Taken{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
               static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC};
}

Result<void> obey(const bench::Workload& workload, const learn::Dataset& test, Parallel& parallel) {
  bench::Federation federation(workload, parallel);
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "train") {
      if (federation.rounds_done() == workload.rounds.size())
        return invalid("the workload has " + std::to_string(workload.rounds.size()) +
                       " rounds, more were asked for");
      FEDGE_TRY(taken, timed_round(federation));
      std::printf("%.6f %.6f\n", taken.seconds, taken.processor_seconds);
    } else if (line == "evaluate") {
      FEDGE_TRY(result, learn::evaluate(workload.task->model(), federation.model(), test, parallel));
      std::printf("%.4f %.6f\n", result.accuracy, result.loss);
    } else {
      return invalid("the command \"" + line + "\" is not known, expected train or evaluate");
    }
    std::fflush(stdout);
  }
  return {};
}

Result<void> train(const Options& options, const bench::Workload& workload, const learn::Dataset& test,
                   Parallel& parallel) {
  bench::Federation federation(workload, parallel);
  std::vector<double> seconds;
  std::vector<double> processor;
  for (std::size_t round = 0; round < workload.rounds.size(); ++round) {
    FEDGE_TRY(taken, timed_round(federation));
    seconds.push_back(taken.seconds);
    processor.push_back(taken.processor_seconds);
  }
  FEDGE_TRY(result, learn::evaluate(workload.task->model(), federation.model(), test, parallel));
  std::sort(seconds.begin(), seconds.end());
  std::sort(processor.begin(), processor.end());
  const double clients = static_cast<double>(options.workload.clients_per_round);
  std::printf("%s, batch %zu, %zu threads, kernels %s\n", options.workload.model.c_str(),
              options.workload.batch, parallel.width(), learn::kernels().name);
  std::printf("clients/s: median %.0f, best %.0f; processor time per client: median %.1f us, best %.1f us\n",
              clients / seconds[seconds.size() / 2], clients / seconds.front(),
              1e6 * processor[processor.size() / 2] / clients, 1e6 * processor.front() / clients);
  std::printf("test accuracy %.4f after %zu rounds\n", result.accuracy, seconds.size());
  return {};
}

Result<void> run(const Options& options) {
  FEDGE_TRY(workload, bench::make_workload(options.workload));
  if (!options.file.empty()) return bench::write_workload(workload, options.file);
  FEDGE_TRY(test, learn::load_test(workload.task->spec().data));
  ThreadPool pool(options.threads);
  if (options.commands) return obey(workload, *test, pool);
  return train(options, workload, *test, pool);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool kernels = false;
  CLI::App app("Clients a second that local training serves; bench/training/run.sh compares with PyTorch.");
  app.add_option("--model", options.workload.model, "softmax, mlp or cnn");
  app.add_option("--batch", options.workload.batch, "samples in a batch")->check(CLI::Range(1, 60));
  app.add_option("--rounds", options.workload.rounds, "rounds of 50 clients")->check(CLI::Range(1, 10'000));
  app.add_option("--threads", options.threads, "threads")->check(CLI::Range(1, 1024));
  app.add_option("--export", options.file, "write the workload to this file instead");
  app.add_flag("--commands", options.commands, "obey lines on standard input: train, evaluate");
  app.add_flag("--kernels", kernels, "print the speed of the kernels instead");
  CLI11_PARSE(app, argc, argv);
  if (kernels) {
    bench::print_kernel_speeds();
    return 0;
  }
  if (const auto done = run(options); !done) {
    std::fprintf(stderr, "bench_training: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
