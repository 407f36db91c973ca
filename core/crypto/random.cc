#include "core/crypto/random.h"

#include <sodium.h>

#include <array>
#include <vector>

#include "core/check.h"
#include "core/crypto/sha256.h"
#include "core/crypto/sodium_ready.h"

namespace fedge {

void need_sodium() {
  static const bool ready = sodium_init() >= 0;
  FEDGE_CHECK(ready, "libsodium cannot reach the system's random generator");
}

void fill_random(std::span<std::uint8_t> out) {
  need_sodium();
  if (!out.empty()) randombytes_buf(out.data(), out.size());
}

std::uint64_t random_u64() {
  std::array<std::uint8_t, 8> bytes;
  fill_random(bytes);
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) value = (value << 8) | byte;
  return value;
}

std::string random_hex(std::size_t bytes) {
  std::vector<std::uint8_t> buffer(bytes);
  fill_random(buffer);
  std::string hex = to_hex(std::span<const std::uint8_t>(buffer));
  wipe(buffer);
  return hex;
}

void wipe(std::span<std::uint8_t> bytes) {
  if (!bytes.empty()) sodium_memzero(bytes.data(), bytes.size());
}

}  // namespace fedge
