#include "learn/kernels/kernels.h"

namespace fedge::learn {

namespace portable {
Kernels table(const char* name);
}
#if FEDGE_X86_KERNELS
namespace x86_64_v3 {
Kernels table(const char* name);
}
namespace x86_64_v4 {
Kernels table(const char* name);
}
#endif

std::vector<const Kernels*> supported_kernels() {
  static const Kernels kPortable = portable::table("portable");
  std::vector<const Kernels*> supported{&kPortable};
#if FEDGE_X86_KERNELS
  // Checks the processor first, since even table() may use the new instructions.
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (v3) {
    static const Kernels kV3 = x86_64_v3::table("x86-64-v3");
    supported.push_back(&kV3);
  }
  if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    static const Kernels kV4 = x86_64_v4::table("x86-64-v4");
    supported.push_back(&kV4);
  }
#endif
  return supported;
}

const Kernels& kernels() {
  static const Kernels& best = *supported_kernels().back();
  return best;
}

}  // namespace fedge::learn
