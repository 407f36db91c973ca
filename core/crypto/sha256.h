// SHA-256: identifies chunks, layouts, run files and models. Hides OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fedge {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::span<const std::byte> bytes);
Digest sha256(std::string_view text);

// SHA-256 over bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::byte> bytes);
  // The hash of the bytes added so far; more may follow.
  Digest so_far() const;
  // The hash of all added bytes; call it once, last.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 64 lower-case hexadecimal digits; short_hex gives the first 12, for tables and logs.
std::string to_hex(std::span<const std::uint8_t> bytes);
std::string short_hex(const Digest& digest);
// Whether to_hex() may have returned this text for a digest.
bool is_hex_digest(std::string_view text);

}  // namespace fedge
