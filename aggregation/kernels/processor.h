// Checks whether this processor has the instruction sets that kernels are compiled for.
#pragma once

namespace fedge::aggregation {

inline bool has_avx2() {  // and FMA
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

inline bool has_avx512() {  // F, BW, DQ, VL; and AVX2
#if defined(__x86_64__)
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace fedge::aggregation
