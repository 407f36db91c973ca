// Compiled with AVX-512 instructions on x86-64 (CMakeLists.txt); empty elsewhere.
#if defined(__x86_64__)
#include "aggregation/kernels/fold_body.h"
#include "aggregation/kernels/fold_variants.h"

namespace fedge::aggregation {

FoldKernel avx512_fold_kernel() { return {"avx512", fold, fold_wide, max_magnitude}; }

}  // namespace fedge::aggregation
#endif
