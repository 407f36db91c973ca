// The sets of loops there are. Only portable.cc may be called anywhere; supported_kernels() asks the
// processor before it hands out another.
#pragma once

#include "protocol/codecs/kernels/kernels.h"

namespace fedge::protocol {

Kernels portable_kernels();
#if defined(__x86_64__)
Kernels avx2_kernels();
#endif

}  // namespace fedge::protocol
