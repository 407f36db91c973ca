// The sets of loops there are, one per fold_*.cc. Only fold_portable.cc may be called anywhere;
// fold_kernels() asks the processor before it hands out another.
#pragma once

#include "aggregation/kernels/fold.h"

namespace fedge::aggregation {

FoldKernel portable_fold_kernel();
#if defined(__x86_64__)
FoldKernel avx2_fold_kernel();    // needs avx2, fma
FoldKernel avx512_fold_kernel();  // needs also avx512f, avx512bw, avx512dq, avx512vl
#endif

}  // namespace fedge::aggregation
