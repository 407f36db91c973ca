#include "bench/training/peak/peak.h"

namespace fedge::bench {

Peak peak_of(std::string_view kernels) {
#if FEDGE_X86_KERNELS
  if (kernels == "x86-64-v3") return peak_x86_64_v3;
  if (kernels == "x86-64-v4") return peak_x86_64_v4;
#endif
  static_cast<void>(kernels);
  return peak_portable;
}

}  // namespace fedge::bench
