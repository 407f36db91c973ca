// The available sets of kernels. Only portable.cc may run on every processor; supported_kernels() checks
// the processor before it returns another set.
#pragma once

#include "protocol/codecs/kernels/kernels.h"

namespace fedge::protocol {

Kernels portable_kernels();
#if defined(__x86_64__)
Kernels avx2_kernels();
#endif

}  // namespace fedge::protocol
