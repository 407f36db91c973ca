// The peak of a core: float32 multiply-adds on registers alone, without memory, in an instruction set's
// vectors. The yardstick of the kernels.
#pragma once

#include <cstddef>
#include <string_view>

namespace fedge::bench {

// Does `rounds` rounds of independent multiply-adds and returns the number of floating-point operations (two
// each). `seed` hides the operands from the compiler; the result is added to `sink`.
using Peak = double (*)(std::size_t rounds, float seed, float* sink);

double peak_portable(std::size_t rounds, float seed, float* sink);
double peak_x86_64_v3(std::size_t rounds, float seed, float* sink);
double peak_x86_64_v4(std::size_t rounds, float seed, float* sink);

// Returns floating-point operations a second of processor time, two for each multiply-add, in the instruction
// set of these kernels (learn::Kernels::name); the best of several turns.
double limit_of(std::string_view kernels);

}  // namespace fedge::bench
