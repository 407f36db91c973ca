// Compiled with AVX2 instructions on x86-64 (CMakeLists.txt); empty elsewhere.
#if defined(__x86_64__)
#include "protocol/codecs/kernels/body.h"
#include "protocol/codecs/kernels/kernel_variants.h"

namespace fedge::protocol {

Kernels avx2_kernels() { return table("avx2"); }

}  // namespace fedge::protocol
#endif
