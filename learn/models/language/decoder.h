// The TextDecoder of a transformer; private to this folder. It keeps 2 * shared heads * head size floats for
// each token and layer. Few tokens are multiplied row by row, straight from the weights; a prompt of many in
// pieces of kPromptRows. The parameters must outlive it; with adapters it keeps a copy with merged weights.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "learn/models/language/block.h"
#include "learn/text_decoder.h"

namespace fedge::learn {

inline constexpr std::size_t kPromptRows = 64;

std::unique_ptr<TextDecoder> make_transformer_decoder(const TransformerShape& shape,
                                                      const TransformerPlaces& places,
                                                      const RotaryTable& rotary, const Adapters& adapters,
                                                      std::span<const float> parameters, std::size_t ranks);

}  // namespace fedge::learn
