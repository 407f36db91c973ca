// Entropy: the source of random bytes for secrets and noise. Programs use the system's generator; a test may
// supply its own for reproducible results.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/crypto/secret.h"

namespace fedge {

using Entropy = std::function<void(std::span<std::uint8_t>)>;

// The system's generator.
Entropy system_entropy();
Secret draw_secret(const Entropy& entropy);

}  // namespace fedge
