// Compiled with AVX-512 instructions on x86-64 (CMakeLists.txt); empty elsewhere.
#if defined(__x86_64__)
#include "aggregation/kernels/robust_body.h"
#include "aggregation/kernels/robust_variants.h"

namespace fedge::aggregation {

RobustKernel avx512_robust_kernel() { return {"avx512", middle_mean, closest_mean, pair_distances}; }

}  // namespace fedge::aggregation
#endif
