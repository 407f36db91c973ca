#include "aggregation/kernels/fold.h"

#include <vector>

#include "aggregation/kernels/fold_variants.h"

namespace fedge::aggregation {
namespace {

std::vector<FoldKernel> supported() {
  std::vector<FoldKernel> kernels;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) kernels.push_back(avx512_fold_kernel());
  if (avx2) kernels.push_back(avx2_fold_kernel());
#endif
  kernels.push_back(portable_fold_kernel());
  return kernels;
}

}  // namespace

std::span<const FoldKernel> fold_kernels() {
  static const std::vector<FoldKernel> kernels = supported();
  return kernels;
}

}  // namespace fedge::aggregation
