#include "learn/weights/names.h"

#include <array>

namespace fedge::learn {

std::span<const LayerName> llama_layer_names() {
  static constexpr std::array<LayerName, 9> kNames = {{{"norm1", "input_layernorm"},
                                                       {"attention.q", "self_attn.q_proj"},
                                                       {"attention.k", "self_attn.k_proj"},
                                                       {"attention.v", "self_attn.v_proj"},
                                                       {"attention.o", "self_attn.o_proj"},
                                                       {"norm2", "post_attention_layernorm"},
                                                       {"mlp.gate", "mlp.gate_proj"},
                                                       {"mlp.up", "mlp.up_proj"},
                                                       {"mlp.down", "mlp.down_proj"}}};
  return kNames;
}

std::span<const LayerName> gpt2_layer_names() {
  static constexpr std::array<LayerName, 8> kNames = {{{"norm1", "ln_1"},
                                                       {"attention.q", kGpt2Fused},
                                                       {"attention.k", kGpt2Fused},
                                                       {"attention.v", kGpt2Fused},
                                                       {"attention.o", "attn.c_proj"},
                                                       {"norm2", "ln_2"},
                                                       {"mlp.up", "mlp.c_fc"},
                                                       {"mlp.down", "mlp.c_proj"}}};
  return kNames;
}

bool is_fused(const std::string& layer) {
  return layer == "attention.q" || layer == "attention.k" || layer == "attention.v";
}

std::size_t fused_place(const std::string& layer) {
  return layer == "attention.q" ? 0 : layer == "attention.k" ? 1 : 2;
}

}  // namespace fedge::learn
