// Folds updates of 25 million float32 parameters into the exact accumulator and prints GB/s of update data.
// The yardstick is a plain float32 y += a * x over the same data in the same run. The variants take turns;
// each variant's fastest turn counts.
//   bench_accumulator [parameters] [turns]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "aggregation/accumulator.h"
#include "bench/aggregation/axpy.h"
#include "bench/plain_optimizer.h"
#include "core/aligned_buffer.h"
#include "core/platform/thread_pool.h"
#include "core/rng.h"

namespace {

using namespace fedge;

constexpr std::size_t kPiece = 65'536;
constexpr std::size_t kUpdates = 8;

struct Variant {
  std::string name;
  std::size_t updates;  // folded by one turn
  std::function<void()> turn;
  double best_seconds = std::numeric_limits<double>::infinity();
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void axpy(const std::string& kernel, std::span<float> y, std::span<const float> x) {
  constexpr float kFactor = 0.01F;
  if (kernel == "avx512")
    bench::axpy_avx512(y.data(), x.data(), kFactor, x.size());
  else if (kernel == "avx2")
    bench::axpy_avx2(y.data(), x.data(), kFactor, x.size());
  else
    bench::axpy_portable(y.data(), x.data(), kFactor, x.size());
}

// Small normal values, like the updates of local training. They are drawn once and then rotated, which saves
// start-up time.
std::vector<AlignedBuffer<float>> make_updates(std::size_t parameters) {
  Rng rng(1);
  std::vector<float> pool(1 << 20);
  for (float& value : pool) value = static_cast<float>(0.01 * rng.normal());
  std::vector<AlignedBuffer<float>> updates;
  for (std::size_t u = 0; u < kUpdates; ++u) {
    updates.emplace_back(parameters);
    for (std::size_t i = 0; i < parameters; ++i) updates[u].data()[i] = pool[(i + 4099 * u) % pool.size()];
  }
  return updates;
}

int run(std::size_t parameters, int turns) {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("weights", {parameters});
  const Coverage whole = Coverage::all(parameters);
  const std::vector<AlignedBuffer<float>> updates = make_updates(parameters);
  std::vector<aggregation::UpdateView> views;
  for (std::size_t u = 0; u < kUpdates; ++u)
    views.push_back({SampleCount(60 + u), &whole, updates[u].span()});

  Sequential alone;
  ThreadPool pair(2);
  AlignedBuffer<float> y(parameters);
  std::vector<Variant> variants;
  for (const aggregation::FoldKernel& kernel : aggregation::fold_kernels()) {
    const std::string name = kernel.name;
    variants.push_back(
        {name + ": y += a * x, float32", 1, [&, name] { axpy(name, y.span(), updates[0].span()); }});
    auto sums = std::make_shared<aggregation::Accumulator>(layout, aggregation::FixedPoint{}, kernel);
    const auto fold = [&, sums](std::size_t count, Parallel& parallel) {
      if (auto folded = sums->fold(std::span(views).first(count), parallel); !folded) {
        std::fprintf(stderr, "bench_accumulator: %s\n", folded.error().message.c_str());
        std::exit(1);
      }
    };
    for (const std::size_t count : {1U, 2U, 4U, 8U})
      variants.push_back(
          {name + ": fold, " + std::to_string(count) + (count == 1 ? " update" : " updates together"), count,
           [=, &alone] { fold(count, alone); }});
    for (const std::size_t count : {1U, 8U})
      variants.push_back({name + ": fold, " + std::to_string(count) + " on 2 threads", count,
                          [=, &pair] { fold(count, pair); }});
  }
  aggregation::Accumulator round(layout, {});
  if (!round.fold(views, alone)) return 1;
  // Reads the mean in pieces, as the end of a round does.
  const auto optimizer = bench::plain_server_optimizer();
  AlignedBuffer<double> mean(kPiece);
  variants.push_back({"model += mean, at a round's end", 1, [&] {
                        for (std::size_t first = 0; first < parameters; first += kPiece) {
                          const std::size_t count = std::min(kPiece, parameters - first);
                          round.mean(first, mean.span().first(count));
                          optimizer->step(first, y.span().subspan(first, count), mean.span().first(count));
                        }
                      }});
  for (int turn = 0; turn < turns; ++turn)
    for (Variant& variant : variants)
      variant.best_seconds = std::min(variant.best_seconds, seconds_of(variant.turn));

  std::printf("%zu float32 parameters, best of %d turns, 1 thread unless said otherwise\n\n", parameters,
              turns);
  std::printf("%-36s %10s %12s\n", "", "GB/s", "to y += a*x");
  double yardstick = 1;
  for (const Variant& variant : variants) {
    const double gigabytes = 4e-9 * static_cast<double>(parameters * variant.updates);
    const double rate = gigabytes / variant.best_seconds;
    if (variant.name.find("y += a * x") != std::string::npos) yardstick = rate;
    std::printf("%-36s %10.2f %11.0f%%\n", variant.name.c_str(), rate, 100 * rate / yardstick);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long parameters = argc > 1 ? std::atol(argv[1]) : 25'000'000;
  const int turns = argc > 2 ? std::atoi(argv[2]) : 15;
  if (parameters < 1 || turns < 1 || turns > 10'000) {
    std::fprintf(stderr, "usage: bench_accumulator [parameters] [turns]\n");
    return 2;
  }
  return run(static_cast<std::size_t>(parameters), turns);
}
