// bench_libraries: the training kernels against Eigen and, if installed, oneDNN, on the shapes that training
// uses. One thread; GFLOP/s of the best of several turns. Eigen is compiled for this machine's processor;
// oneDNN selects its code at run time.
#define Eigen Eigen_native  // keep these templates apart from any others in the program
#include <Eigen/Core>
#if FEDGE_HAS_ONEDNN
#include <dnnl.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "core/aligned_buffer.h"
#include "learn/kernels/kernels.h"

namespace {

using fedge::learn::DenseShape;
using Matrix = Eigen_native::Map<
    Eigen_native::Matrix<float, Eigen_native::Dynamic, Eigen_native::Dynamic, Eigen_native::RowMajor>, 64>;

constexpr int kTurns = 15;
constexpr double kTurnSeconds = 0.01;

double gigaflops(const DenseShape& shape, const std::function<void()>& work) {
  const double flops = 2.0 * static_cast<double>(shape.rows * shape.in * shape.out);
  double best = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    double seconds = 0;
    double done = 0;
    do {
      work();
      done += flops;
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    } while (seconds < kTurnSeconds);
    best = std::max(best, done / seconds / 1e9);
  }
  return best;
}

struct Operands {
  explicit Operands(const DenseShape& shape)
      : x(shape.rows * shape.in),
        w(shape.in * shape.out),
        bias(shape.out),
        y(shape.rows * shape.out),
        dx(shape.rows * shape.in) {
    // Values small enough that endlessly repeated updates do not overflow.
    std::fill_n(x.data(), x.size(), 1e-3F);
    std::fill_n(w.data(), w.size(), 1e-3F);
    std::fill_n(y.data(), y.size(), 1e-9F);
  }
  fedge::AlignedBuffer<float> x, w, bias, y, dx;
};

void compare(const DenseShape& shape) {
  const auto& kernels = fedge::learn::kernels();
  const auto rows = static_cast<long>(shape.rows);
  const auto in = static_cast<long>(shape.in);
  const auto out = static_cast<long>(shape.out);
  Operands o(shape);
  Matrix x(o.x.data(), rows, in);
  Matrix w(o.w.data(), out, in);
  Matrix y(o.y.data(), rows, out);
  Matrix dx(o.dx.data(), rows, in);
  const auto own = [&](int pass) {
    if (pass == 0) kernels.dense_forward(shape, o.x.data(), o.w.data(), o.bias.data(), o.y.data());
    if (pass == 1) kernels.dense_backward(shape, o.y.data(), o.w.data(), o.dx.data());
    if (pass == 2) kernels.dense_update(shape, {0, shape.out}, o.y.data(), o.x.data(), 1.0F, o.w.data());
  };
  const auto eigen = [&](int pass) {
    if (pass == 0) y.noalias() = x * w.transpose();
    if (pass == 1) dx.noalias() = y * w;
    if (pass == 2) w.noalias() += y.transpose() * x;
  };
  std::printf("%5zu x %4zu x %3zu ", shape.rows, shape.in, shape.out);
  for (int pass = 0; pass < 3; ++pass) {
    std::printf("  %6.1f %6.1f", gigaflops(shape, [&] { own(pass); }),
                gigaflops(shape, [&] { eigen(pass); }));
#if FEDGE_HAS_ONEDNN
    const auto onednn = [&] {
      float *a = o.x.data(), *b = o.w.data(), *c = o.y.data(), *d = o.dx.data();
      if (pass == 0) dnnl_sgemm('N', 'T', rows, out, in, 1.0F, a, in, b, in, 0.0F, c, out);
      if (pass == 1) dnnl_sgemm('N', 'N', rows, in, out, 1.0F, c, out, b, in, 0.0F, d, in);
      if (pass == 2) dnnl_sgemm('T', 'N', out, in, rows, 1.0F, c, out, a, in, 1.0F, b, in);
    };
    std::printf(" %6.1f", gigaflops(shape, onednn));
#else
    std::printf("      -");
#endif
  }
  std::printf("\n");
}

}  // namespace

int main() {
  std::printf("kernels %s, GFLOP/s on one thread: Fedge, Eigen, oneDNN\n", fedge::learn::kernels().name);
  std::printf("%18s   %20s  %20s  %20s\n", "rows x in x out", "forward", "backward", "update");
  for (const DenseShape shape : {DenseShape{10, 784, 200},
                                 {10, 200, 200},
                                 {10, 200, 10},
                                 {10, 784, 10},
                                 {20, 784, 200},
                                 {10, 3136, 512}})
    compare(shape);
  return 0;
}
