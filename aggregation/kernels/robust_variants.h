// The sets of loops there are, one per robust_*.cc. Only robust_portable.cc may be called anywhere;
// robust_kernels() asks the processor before it hands out another.
#pragma once

#include "aggregation/kernels/robust.h"

namespace fedge::aggregation {

RobustKernel portable_robust_kernel();
#if defined(__x86_64__)
RobustKernel avx2_robust_kernel();    // needs avx2, fma
RobustKernel avx512_robust_kernel();  // needs also avx512f, avx512bw, avx512dq, avx512vl
#endif

}  // namespace fedge::aggregation
