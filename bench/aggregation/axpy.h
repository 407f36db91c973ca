// The yardstick: y += a * x in float32, a plain loop that the compiler vectorises. One variant per
// instruction set of the accumulator's kernels, under the same names.
#pragma once

#include <cstddef>

namespace fedge::bench {

void axpy_portable(float* y, const float* x, float a, std::size_t count);
void axpy_avx2(float* y, const float* x, float a, std::size_t count);
void axpy_avx512(float* y, const float* x, float a, std::size_t count);

}  // namespace fedge::bench
