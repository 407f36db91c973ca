// The names of a block's layers in Hugging Face's models, for reading and writing.
#pragma once

#include <span>
#include <string>

namespace fedge::learn {

struct LayerName {
  const char* layer;   // Fedge: "attention.q"
  const char* stored;  // "self_attn.q_proj"
};

// Norms and matrices of a block of the Llama family, which is named "model.layers.N".
std::span<const LayerName> llama_layer_names();
// The same for a block of GPT-2, which is named "h.N": q, k and v are in one matrix, one after the other.
std::span<const LayerName> gpt2_layer_names();
inline constexpr const char* kGpt2Fused = "attn.c_attn";

// The number of a layer's matrix in its fused one: 0 to 2 for q, k and v.
std::size_t fused_place(const std::string& layer);
bool is_fused(const std::string& layer);

}  // namespace fedge::learn
