#include "core/crypto/entropy.h"

#include "core/crypto/random.h"

namespace fedge {

Entropy system_entropy() { return &fill_random; }

Secret draw_secret(const Entropy& entropy) {
  Secret secret;
  entropy(secret.bytes());
  return secret;
}

}  // namespace fedge
