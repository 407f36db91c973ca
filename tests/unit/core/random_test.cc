#include "core/crypto/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

using namespace fedge;

TEST_CASE("random: hexadecimal text has two digits a byte and never comes twice") {
  const std::string first = random_hex(32);
  CHECK(first.size() == 64);
  CHECK(first.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(first != random_hex(32));
  CHECK(random_hex(0).empty());
}

TEST_CASE("random: a long draw uses every byte value") {
  std::array<std::uint8_t, 16'384> bytes{};
  fill_random(bytes);
  for (int value = 0; value < 256; ++value)
    CHECK(std::find(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(value)) != bytes.end());
}

TEST_CASE("random: wiping leaves zeros") {
  std::array<std::uint8_t, 5> bytes{1, 2, 3, 4, 5};
  wipe(bytes);
  CHECK(bytes == std::array<std::uint8_t, 5>{});
  wipe({});
}
