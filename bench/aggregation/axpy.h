// The yardstick: y += a * x in float32, a plain loop that the compiler vectorises, once for each
// instruction set that the accumulator's kernels exist for, under the same name.
#pragma once

#include <cstddef>

namespace fedge::bench {

void axpy_portable(float* y, const float* x, float a, std::size_t count);
void axpy_avx2(float* y, const float* x, float a, std::size_t count);
void axpy_avx512(float* y, const float* x, float a, std::size_t count);

}  // namespace fedge::bench
