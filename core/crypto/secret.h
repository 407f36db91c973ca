// Secret: 256 secret bits such as a key or a seed. Cannot be copied or printed by accident; wiped on
// destruction. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace fedge {

class Secret {
 public:
  static constexpr std::size_t kSize = 32;  // bytes

  Secret() = default;  // zeros
  explicit Secret(std::span<const std::uint8_t, kSize> bytes);
  ~Secret();
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  Secret copy() const { return Secret(bytes_); }
  std::span<const std::uint8_t, kSize> bytes() const { return bytes_; }
  std::span<std::uint8_t, kSize> bytes() { return bytes_; }
  // Compares in constant time.
  bool operator==(const Secret& other) const;

 private:
  std::array<std::uint8_t, kSize> bytes_{};
};

}  // namespace fedge
