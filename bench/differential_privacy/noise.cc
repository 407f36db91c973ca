// Millions of noise samples a second on one thread and on all, drawn as runs draw them; the best of several
// turns. The yardstick is std::normal_distribution over a Mersenne twister, which is neither exact nor
// secret.
//   bench_noise [numbers] [turns]
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "bench/timing.h"
#include "core/crypto/sha256.h"
#include "core/platform/thread_pool.h"
#include "privacy/differential/noise.h"
#include "privacy/differential/tree_noise.h"

namespace {

using namespace fedge;
using bench::best_of;

void print(const char* what, std::size_t threads, std::size_t numbers, double time) {
  std::printf("%-40s %zu threads %8.2f M/s\n", what, threads, static_cast<double>(numbers) / time * 1e-6);
}

void measure(std::size_t count, int turns, Parallel& parallel) {
  const Secret key{Digest{1}};
  std::vector<std::int64_t> numbers(count);
  const auto with = [&](std::uint64_t variance, privacy::NoiseKind kind) {
    return best_of(turns, [&] {
      privacy::add_noise(numbers, {.key = key, .variance = variance, .kind = kind}, parallel);
    });
  };
  print("discrete Gaussian, sigma 64", parallel.width(), count, with(4096, privacy::NoiseKind::kGaussian));
  print("discrete Gaussian, sigma 2^19", parallel.width(), count,
        with(std::uint64_t{1} << 38, privacy::NoiseKind::kGaussian));
  print("Skellam, sigma 64", parallel.width(), count, with(4096, privacy::NoiseKind::kSkellam));
  print("Skellam, sigma 2^13", parallel.width(), count,
        with(std::uint64_t{1} << 26, privacy::NoiseKind::kSkellam));
  std::uint64_t step = 0;
  const double tree = best_of(turns, [&] {
    for (int i = 0; i < 16; ++i)
      privacy::add_tree_noise(numbers, ++step, {key, std::uint64_t{1} << 38, 0}, parallel);
  });
  print("tree, sigma 2^19, mean of 16 steps", parallel.width(), count * 16, tree);
}

}  // namespace

int main(int count, char** values) {
  const std::size_t numbers = count > 1 ? std::strtoull(values[1], nullptr, 10) : 1'000'000;
  const int turns = count > 2 ? std::atoi(values[2]) : 5;
  std::vector<double> plain(numbers);
  const double time = best_of(turns, [&] {
    std::mt19937_64 engine(1);
    std::normal_distribution<double> normal(0, 1);
    for (double& value : plain) value += normal(engine);
  });
  print("std::normal_distribution, mt19937_64", 1, numbers, time);
  Sequential here;
  measure(numbers, turns, here);
  ThreadPool all(std::thread::hardware_concurrency());
  measure(numbers, turns, all);
}
