#include "protocol/codecs/kernels/body.h"
#include "protocol/codecs/kernels/kernel_variants.h"

namespace fedge::protocol {

Kernels portable_kernels() { return table("portable"); }

}  // namespace fedge::protocol
