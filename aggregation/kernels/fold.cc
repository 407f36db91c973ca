#include "aggregation/kernels/fold.h"

#include <vector>

#include "aggregation/kernels/fold_variants.h"
#include "aggregation/kernels/processor.h"

namespace fedge::aggregation {
namespace {

std::vector<FoldKernel> supported_folds() {
  std::vector<FoldKernel> kernels;
#if defined(__x86_64__)
  if (has_avx512()) kernels.push_back(avx512_fold_kernel());
  if (has_avx2()) kernels.push_back(avx2_fold_kernel());
#endif
  kernels.push_back(portable_fold_kernel());
  return kernels;
}

}  // namespace

std::span<const FoldKernel> fold_kernels() {
  static const std::vector<FoldKernel> kernels = supported_folds();
  return kernels;
}

}  // namespace fedge::aggregation
