#include "bench/training/kernel_speed.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "bench/training/peak.h"
#include "core/aligned_buffer.h"
#include "core/rng.h"
#include "learn/kernels/kernels.h"
#include "learn/layers/pooled_convolution.h"

namespace fedge::bench {
namespace {

constexpr int kTurns = 7;
constexpr double kSecondsPerTurn = 0.02;

// Returns operations a second of processor time, so that other programs do not count; the best of several
// turns. `work` returns the number of operations it did.
double speed(const std::function<double()>& work) {
  double best = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    double operations = 0;
    double seconds = 0;
    const std::clock_t start = std::clock();
    while (seconds < kSecondsPerTurn) {
      for (int i = 0; i < 8; ++i) operations += work();
      seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    }
    best = std::max(best, operations / seconds);
  }
  return best;
}

Peak peak_of(const std::string& kernels) {
#if FEDGE_X86_KERNELS
  if (kernels == "x86-64-v3") return peak_x86_64_v3;
  if (kernels == "x86-64-v4") return peak_x86_64_v4;
#endif
  static_cast<void>(kernels);
  return peak_portable;
}

struct NamedShape {
  const char* use;
  learn::DenseShape shape;
};

// Rows x inputs x outputs that occur in the models.
constexpr NamedShape kShapes[] = {
    {"mlp, layer 1, batch 10", {10, 784, 200}}, {"mlp, layer 1, batch 20", {20, 784, 200}},
    {"mlp, layer 2, batch 10", {10, 200, 200}}, {"mlp, layer 3, batch 10", {10, 200, 10}},
    {"softmax, batch 10", {10, 784, 10}},       {"softmax, batch 20", {20, 784, 10}},
    {"cnn, dense, batch 10", {10, 3136, 512}},
};

struct NamedConvolution {
  const char* use;
  learn::PooledConvolutionShape shape;
  bool first;  // has no gradient with respect to its inputs
};

constexpr NamedConvolution kConvolutions[] = {
    {"cnn, conv1", {28, 28, 1, 32}, true},
    {"cnn, conv2", {14, 14, 32, 64}, false},
};

struct Arrays {
  explicit Arrays(const learn::DenseShape& s)
      : x(s.rows * s.in),
        w(s.out * s.in),
        bias(s.out),
        y(s.rows * s.out),
        dy(s.rows * s.out),
        dx(s.rows * s.in) {
    Rng rng(1);
    for (AlignedBuffer<float>* array : {&x, &w, &dy})
      for (float& value : array->span()) value = static_cast<float>(0.01 * rng.normal());
  }
  AlignedBuffer<float> x, w, bias, y, dy, dx;
};

void print_row(const learn::Kernels& kernels, const NamedShape& named, double peak) {
  const learn::DenseShape& s = named.shape;
  Arrays a(s);
  const double operations = 2.0 * static_cast<double>(s.rows * s.in * s.out);
  const double forward = speed([&] {
    kernels.dense_forward(s, a.x.data(), a.w.data(), a.bias.data(), a.y.data());
    return operations;
  });
  const double backward = speed([&] {
    kernels.dense_backward(s, a.dy.data(), a.w.data(), a.dx.data());
    return operations;
  });
  const double update = speed([&] {
    kernels.dense_update(s, {0, s.out}, a.dy.data(), a.x.data(), 1.0F, a.w.data());
    return operations;
  });
  const std::string shape = std::to_string(s.rows) + "x" + std::to_string(s.in) + "x" + std::to_string(s.out);
  std::printf("%-12s %-28s %-12s", kernels.name, named.use, shape.c_str());
  for (const double value : {forward, backward, update})
    std::printf("%7.1f %3.0f%%", value / 1e9, 100 * value / peak);
  std::printf("\n");
}

// Whole layers, pooling included, one image at a time. The operations counted are those of a dense
// computation. The backward pass skips products with zeros and may therefore exceed the processor's limit.
void print_row(const learn::Kernels& kernels, const NamedConvolution& named, double peak) {
  const learn::PooledConvolutionShape& s = named.shape;
  const std::size_t weights = s.out * s.patch();
  const learn::PooledConvolution layer(s, {0, weights, s.patch(), s.out});
  const learn::LayerRows rows = learn::LayerRows{{{0, s.out}}, {{0, s.out}}, {{0, s.out}}};
  learn::PooledConvolutionSpace space(s, kernels, 1);
  AlignedBuffer<float> parameters(weights + s.out), gradient(weights + s.out);
  AlignedBuffer<float> x(s.input_size()), dx(s.input_size()), y(s.output_size()), dy(s.output_size());
  Rng rng(1);
  for (AlignedBuffer<float>* array : {&parameters, &x, &dy})
    for (float& value : array->span()) value = static_cast<float>(0.01 * rng.normal());
  const double pass = 2.0 * static_cast<double>(s.lines() * s.places() * weights);
  const double forward = speed([&] {
    layer.forward(kernels, parameters.span(), 1, x.data(), y.data(), space);
    return pass;
  });
  const double backward = speed([&] {
    layer.backward(kernels, rows,
                   {1, parameters.data(), x.data(), dy.data(), named.first ? nullptr : dx.data()}, y.data(),
                   {gradient.data(), 0.0F}, space);
    return named.first ? pass : 2 * pass;
  });
  const std::string shape = std::to_string(s.height) + "x" + std::to_string(s.width) + "x" +
                            std::to_string(s.in) + "-" + std::to_string(s.out);
  std::printf("%-12s %-28s %-12s", kernels.name, named.use, shape.c_str());
  for (const double value : {forward, backward})
    std::printf("%7.1f %3.0f%%", value / 1e9, 100 * value / peak);
  std::printf("\n");
}

}  // namespace

void print_kernel_speeds() {
  std::printf("GFLOP/s on one thread, and the share of the multiply-adds the core can do; best of %d turns\n",
              kTurns);
  float sink = 0;
  for (const learn::Kernels* kernels : learn::supported_kernels()) {
    const Peak peak = peak_of(kernels->name);
    double limit = 0;
    for (int i = 0; i < 5; ++i) limit = std::max(limit, speed([&] { return peak(100'000, 0.999F, &sink); }));
    std::printf("\n%-12s %-28s %-12s%12s%12s%12s\n", kernels->name, "limit", "", "forward", "backward",
                "update");
    std::printf("%-12s %-28s %-12s%7.1f\n", kernels->name, "multiply-adds on registers", "", limit / 1e9);
    for (const NamedShape& shape : kShapes) print_row(*kernels, shape, limit);
    for (const NamedConvolution& convolution : kConvolutions) print_row(*kernels, convolution, limit);
  }
  if (sink == 42.0F) std::printf("\n");  // keeps the compiler from removing the sums
}

}  // namespace fedge::bench
