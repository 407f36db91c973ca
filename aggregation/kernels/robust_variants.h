// The robust kernels, one per robust_*.cc. Only the portable one may be called on every processor;
// robust_kernels() checks the processor before it returns the others.
#pragma once

#include "aggregation/kernels/robust.h"

namespace fedge::aggregation {

RobustKernel portable_robust_kernel();
#if defined(__x86_64__)
RobustKernel avx2_robust_kernel();    // needs avx2, fma
RobustKernel avx512_robust_kernel();  // needs also avx512f, avx512bw, avx512dq, avx512vl
#endif

}  // namespace fedge::aggregation
