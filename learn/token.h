// Token: the unit of text for a language model, an integer below the vocabulary's size.
#pragma once

#include <cstdint>
#include <limits>

namespace fedge::learn {

using Token = std::uint16_t;
// Target value where nothing is predicted. Vocabularies are too small to contain it.
inline constexpr Token kNoToken = std::numeric_limits<Token>::max();

}  // namespace fedge::learn
