// A token: what a text is made of for a language model, a number below the vocabulary's size.
#pragma once

#include <cstdint>
#include <limits>

namespace fedge::learn {

using Token = std::uint16_t;
// In place of a target: nothing is predicted here. No vocabulary reaches it.
inline constexpr Token kNoToken = std::numeric_limits<Token>::max();

}  // namespace fedge::learn
