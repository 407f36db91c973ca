// Unpredictable bytes for keys, tokens and connection names, from the system's generator. A run's result must
// not depend on them: use core/rng.h there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace fedge {

void fill_random(std::span<std::uint8_t> out);
std::uint64_t random_u64();
// `bytes` random bytes as lower-case hexadecimal.
std::string random_hex(std::size_t bytes);
// Overwrites memory; the compiler cannot remove the stores.
void wipe(std::span<std::uint8_t> bytes);

}  // namespace fedge
