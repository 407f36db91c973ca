// Token: the unit of text for a language model, an integer below the vocabulary's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace fedge::learn {

using Token = std::uint32_t;
// Target value where nothing is predicted. Vocabularies are too small to contain it.
inline constexpr Token kNoToken = std::numeric_limits<Token>::max();
inline constexpr std::size_t kMaxTokens = std::size_t{1} << 20;  // of any vocabulary

}  // namespace fedge::learn
