// What a core can do at most: float32 multiply-adds on registers alone, no memory, in an instruction
// set's vectors. The yardstick of the kernels.
#pragma once

#include <cstddef>

namespace fedge::bench {

// Does `rounds` rounds of independent multiply-adds; returns how many floating-point operations that
// were (two each). `seed` keeps the compiler from knowing the numbers; the sum goes to `sink`.
using Peak = double (*)(std::size_t rounds, float seed, float* sink);

double peak_portable(std::size_t rounds, float seed, float* sink);
double peak_x86_64_v3(std::size_t rounds, float seed, float* sink);
double peak_x86_64_v4(std::size_t rounds, float seed, float* sink);

}  // namespace fedge::bench
