// Speed of the kernels of learn/ beside the processor's limit, measured in the same run.
#pragma once

namespace fedge::bench {

// Prints GFLOP/s of each kernel for each instruction set and shape, and the fraction of the limit.
void print_kernel_speeds();

}  // namespace fedge::bench
