#include "bench/aggregation/axpy.h"

namespace fedge::bench {

void axpy_avx2(float* __restrict y, const float* __restrict x, float a, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += a * x[i];
}

}  // namespace fedge::bench
