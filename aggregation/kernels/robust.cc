#include "aggregation/kernels/robust.h"

#include <vector>

#include "aggregation/kernels/processor.h"
#include "aggregation/kernels/robust_variants.h"

namespace fedge::aggregation {
namespace {

std::vector<RobustKernel> supported_robust() {
  std::vector<RobustKernel> kernels;
#if defined(__x86_64__)
  if (has_avx512()) kernels.push_back(avx512_robust_kernel());
  if (has_avx2()) kernels.push_back(avx2_robust_kernel());
#endif
  kernels.push_back(portable_robust_kernel());
  return kernels;
}

}  // namespace

std::span<const RobustKernel> robust_kernels() {
  static const std::vector<RobustKernel> kernels = supported_robust();
  return kernels;
}

}  // namespace fedge::aggregation
