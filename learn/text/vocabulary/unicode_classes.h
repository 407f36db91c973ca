// Unicode's classes of characters that tokenizers distinguish, by code point.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fedge::learn {

bool is_letter(std::uint32_t code);       // general category L
bool is_number(std::uint32_t code);       // general category N
bool is_white_space(std::uint32_t code);  // property White_Space

}  // namespace fedge::learn
