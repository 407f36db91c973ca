// Compiled with AVX2 instructions on x86-64 (CMakeLists.txt); empty elsewhere.
#if defined(__x86_64__)
#include "aggregation/samplers/awpsp/pair_kernels_body.h"

namespace fedge::aggregation {

PairKernels avx2_pair_kernels() { return {"avx2", score, judge}; }

}  // namespace fedge::aggregation
#endif
