#include "core/crypto/secret.h"

#include <sodium.h>

#include <algorithm>

#include "core/crypto/random.h"

namespace fedge {

Secret::Secret(std::span<const std::uint8_t, kSize> bytes) { std::ranges::copy(bytes, bytes_.begin()); }

Secret::~Secret() { wipe(bytes_); }

Secret::Secret(Secret&& other) noexcept : bytes_(other.bytes_) { wipe(other.bytes_); }

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this == &other) return *this;
  bytes_ = other.bytes_;
  wipe(other.bytes_);
  return *this;
}

bool Secret::operator==(const Secret& other) const {
  return sodium_memcmp(bytes_.data(), other.bytes_.data(), kSize) == 0;
}

}  // namespace fedge
