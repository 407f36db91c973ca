#include "bench/training/kernel_speed.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "bench/training/peak/peak.h"
#include "core/aligned_buffer.h"
#include "core/rng.h"
#include "learn/kernels/kernels.h"
#include "learn/layers/patch_convolution.h"
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

struct NamedPatches {
  const char* use;
  learn::PatchConvolutionShape shape;
};

constexpr NamedPatches kPatches[] = {
    {"resnet-20, 16 channels", {{32, 3, 1, true}, {32, 3, 1, true}, 16, 16, 1}},
    {"resnet-20, 32 channels", {{16, 3, 1, true}, {16, 3, 1, true}, 32, 32, 1}},
    {"resnet-20, 64 channels", {{8, 3, 1, true}, {8, 3, 1, true}, 64, 64, 1}},
};

// Rows, weights' inputs and outputs of the products of all steps of a sequence, or all tokens.
constexpr NamedShape kProducts[] = {
    {"lstm, layer 2, batch 10", {800, 256, 1024}},
    {"transformer, feed-forward", {2048, 192, 768}},
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

std::string shape_text(const learn::DenseShape& s) {
  return std::to_string(s.rows) + "x" + std::to_string(s.in) + "x" + std::to_string(s.out);
}

// Prints speeds in operations a second, and their shares of the limit. The limit is measured anew: a
// neighbour on the same core halves it for seconds at a time.
void print_speeds(const learn::Kernels& kernels, const char* use, const std::string& shape,
                  std::initializer_list<double> speeds) {
  const double peak = limit_of(kernels.name);
  std::printf("%-12s %-28s %-14s", kernels.name, use, shape.c_str());
  for (const double value : speeds) std::printf("%7.1f %3.0f%%", value / 1e9, 100 * value / peak);
  std::printf("\n");
}

void print_row(const learn::Kernels& kernels, const NamedShape& named) {
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
  print_speeds(kernels, named.use, shape_text(s), {forward, backward, update});
}

// Whole layers, pooling included, one image at a time. The operations counted are those of a dense
// computation. The backward pass skips products with zeros and may therefore exceed the processor's limit.
void print_row(const learn::Kernels& kernels, const NamedConvolution& named) {
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
  print_speeds(kernels, named.use, shape, {forward, backward});
}

void print_row(const learn::Kernels& kernels, const NamedPatches& named) {
  const learn::PatchConvolutionShape& s = named.shape;
  learn::PatchConvolution convolution(s, kernels);
  AlignedBuffer<float> w(s.weights()), x(s.input_size()), dx(s.input_size()), y(s.output_size());
  Rng rng(1);
  for (AlignedBuffer<float>* array : {&w, &x, &y})
    for (float& value : array->span()) value = static_cast<float>(0.01 * rng.normal());
  convolution.pack_forward(w.data());
  convolution.pack_backward(w.data());
  const double pass = 2.0 * static_cast<double>(s.products());
  const double forward = speed([&] {
    convolution.forward(x.data(), nullptr, y.data());
    return pass;
  });
  const double backward = speed([&] {
    convolution.input_gradient(y.data(), dx.data());
    return pass;
  });
  const double update = speed([&] {
    convolution.add_gradient(x.data(), y.data());
    return pass;
  });
  const std::string shape = std::to_string(s.y.length) + "x" + std::to_string(s.x.length) + "x" +
                            std::to_string(s.in) + "-" + std::to_string(s.out);
  print_speeds(kernels, named.use, shape, {forward, backward, update});
}

void print_product_row(const learn::Kernels& kernels, const NamedShape& named) {
  const learn::DenseShape& s = named.shape;
  Arrays a(s);
  AlignedBuffer<float> scratch(learn::kProductScratch);
  const double operations = 2.0 * static_cast<double>(s.rows * s.in * s.out);
  const double forward = speed([&] {
    kernels.product({s.rows, s.in, s.out}, {a.x.data(), s.in, 1}, {a.w.data(), 1, s.in},
                    {.data = a.y.data(), .row = s.out}, scratch.data());
    return operations;
  });
  const double backward = speed([&] {
    kernels.product({s.rows, s.out, s.in}, {a.dy.data(), s.out, 1}, {a.w.data(), s.in, 1},
                    {.data = a.dx.data(), .row = s.in}, scratch.data());
    return operations;
  });
  const double update = speed([&] {
    kernels.product({s.out, s.rows, s.in}, {a.dy.data(), 1, s.out}, {a.x.data(), s.in, 1},
                    {.data = a.w.data(), .row = s.in}, scratch.data());
    return operations;
  });
  print_speeds(kernels, named.use, shape_text(s), {forward, backward, update});
}

}  // namespace

void print_kernel_speeds() {
  std::printf("GFLOP/s on one thread, and the share of the multiply-adds the core can do; best of %d turns\n",
              kTurns);
  for (const learn::Kernels* kernels : learn::supported_kernels()) {
    std::printf("\n%-12s %-28s %-14s%12s%12s%12s\n", kernels->name, "limit", "", "forward", "backward",
                "update");
    std::printf("%-12s %-28s %-14s%7.1f\n", kernels->name, "multiply-adds on registers", "",
                limit_of(kernels->name) / 1e9);
    for (const NamedShape& shape : kShapes) print_row(*kernels, shape);
    for (const NamedConvolution& convolution : kConvolutions) print_row(*kernels, convolution);
    for (const NamedPatches& patches : kPatches) print_row(*kernels, patches);
    for (const NamedShape& shape : kProducts) print_product_row(*kernels, shape);
  }
}

}  // namespace fedge::bench
