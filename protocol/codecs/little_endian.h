// Numbers in payloads: little-endian, at any alignment, whatever the machine's byte order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace fedge::protocol {

// Converts from this machine's byte order to little-endian, or back.
template <class T>
T swapped_if_big_endian(T value) {
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
    return value;
  } else {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    std::reverse(bytes.begin(), bytes.end());
    return std::bit_cast<T>(bytes);
  }
}

template <class T>
void append(std::vector<std::byte>& out, std::span<const T> values) {
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
    const auto bytes = std::as_bytes(values);
    out.insert(out.end(), bytes.begin(), bytes.end());
  } else {
    for (const T value : values) {
      const T swapped = swapped_if_big_endian(value);
      const auto bytes = std::as_bytes(std::span(&swapped, 1));
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
  }
}

template <class T>
void append(std::vector<std::byte>& out, T value) {
  append(out, std::span<const T>(&value, 1));
}

}  // namespace fedge::protocol
