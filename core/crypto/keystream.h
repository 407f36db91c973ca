// Keystream: the bytes that a stream cipher generates from a 256-bit key, from any offset. AES-256 in counter
// mode if the processor has AES instructions, otherwise ChaCha20 (both from OpenSSL). A key must be used for
// one stream only. One object a thread. Measured in bench/secure_aggregation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/crypto/secret.h"

namespace fedge {

enum class StreamCipher : std::uint8_t { kAes256Ctr = 1, kChaCha20 = 2 };
// True if this processor has AES instructions. Without them AES is slow, and its timing may leak the key.
bool has_fast_aes();

class Keystream {
 public:
  explicit Keystream(StreamCipher cipher);
  ~Keystream();
  Keystream(Keystream&&) noexcept;
  Keystream& operator=(Keystream&&) noexcept;

  // Starts this key's stream at byte `offset`: a multiple of 64, below 2^37.
  void start(const Secret& key, std::uint64_t offset = 0);
  // Writes the next bytes; the split into calls does not matter.
  void next(std::span<std::uint8_t> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fedge
