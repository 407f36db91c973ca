#include "aggregation/kernels/processor.h"
#include "aggregation/samplers/awpsp/pair_kernels_body.h"

namespace fedge::aggregation {

PairKernels portable_pair_kernels() { return {"portable", score, judge}; }

PairKernels best_pair_kernels() {
#if defined(__x86_64__)
  if (has_avx2()) return avx2_pair_kernels();
#endif
  return portable_pair_kernels();
}

}  // namespace fedge::aggregation
