// Keystream: the bytes that a stream cipher makes of a 256-bit key, from any place on. AES-256 in counter
// mode where the processor has instructions for it, ChaCha20 where it has not (both OpenSSL's). A key must
// make one stream only, ever. One object a thread. Measured in bench/secure_aggregation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/crypto/secret.h"

namespace fedge {

enum class StreamCipher : std::uint8_t { kAes256Ctr = 1, kChaCha20 = 2 };
// "aes-256-ctr", "chacha20".
const char* to_string(StreamCipher cipher);
// Whether this processor computes AES by instructions of its own: without, it is slow, and its time may tell
// of the key.
bool has_fast_aes();

class Keystream {
 public:
  explicit Keystream(StreamCipher cipher);
  ~Keystream();
  Keystream(Keystream&&) noexcept;
  Keystream& operator=(Keystream&&) noexcept;

  // From now on this key's stream, from byte `offset` on: a multiple of 64, below 2^37.
  void start(const Secret& key, std::uint64_t offset = 0);
  // The next bytes; several calls give what one would.
  void next(std::span<std::uint8_t> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fedge
