// The fold kernels, one per fold_*.cc. Only the portable one may be called on every processor; fold_kernels()
// checks the processor before it returns the others.
#pragma once

#include "aggregation/kernels/fold.h"

namespace fedge::aggregation {

FoldKernel portable_fold_kernel();
#if defined(__x86_64__)
FoldKernel avx2_fold_kernel();    // needs avx2, fma
FoldKernel avx512_fold_kernel();  // needs also avx512f, avx512bw, avx512dq, avx512vl
#endif

}  // namespace fedge::aggregation
