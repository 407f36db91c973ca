// SHA-256: names chunks, layouts, run files and models. OpenSSL behind one function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fedge {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::span<const std::byte> bytes);
Digest sha256(std::string_view text);

// 64 lower-case hexadecimal digits; short_hex gives the first 12, for tables and logs.
std::string to_hex(std::span<const std::uint8_t> bytes);
std::string short_hex(const Digest& digest);

}  // namespace fedge
