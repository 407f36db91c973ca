// Entropy: where secrets and noise come from. The system's generator wherever anything is to be kept from
// anybody; a test names its own, so that it can be repeated.
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
