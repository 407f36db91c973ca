#include "protocol/codecs/kernels/kernels.h"

#include <vector>

#include "protocol/codecs/kernels/kernel_variants.h"

namespace fedge::protocol {
namespace {

std::vector<Kernels> supported() {
  std::vector<Kernels> sets;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) sets.push_back(avx2_kernels());
#endif
  sets.push_back(portable_kernels());
  return sets;
}

}  // namespace

std::span<const Kernels> supported_kernels() {
  static const std::vector<Kernels> sets = supported();
  return sets;
}

}  // namespace fedge::protocol
