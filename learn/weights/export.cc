#include "learn/weights/export.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "learn/kernels/kernels.h"
#include "learn/models/adapters.h"
#include "learn/weights/names.h"

namespace fedge::learn {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr int kIndent = 2;

std::string folder_block(const ModelSpec& spec, std::size_t block) {
  return (spec.kind == "llama" ? "model.layers." : "transformer.h.") + std::to_string(block) + ".";
}

// One of Fedge's tensors under its published name.
struct Placed {
  std::string stored;
  bool transposed = false;
  std::size_t part = 0;  // of `parts` with the same outputs, which are one tensor
  std::size_t parts = 1;
};

class Places {
 public:
  explicit Places(const ModelSpec& spec) : spec_(spec), llama_(spec.kind == "llama") {}

  Placed of(const std::string& tensor) const {
    const std::string head = llama_ ? "model." : "transformer.";
    if (tensor == "token_embedding") return {head + (llama_ ? "embed_tokens.weight" : "wte.weight")};
    if (tensor == "position_embedding") return {head + "wpe.weight"};
    if (tensor == "head.weight") return {"lm_head.weight"};
    if (tensor.starts_with("norm.")) return {head + (llama_ ? "norm" : "ln_f") + tensor.substr(4)};
    const std::size_t layer = tensor.find('.') + 1;  // "blockN.attention.q.weight"
    const std::size_t kind = tensor.rfind('.');
    const std::string name = tensor.substr(layer, kind - layer);
    const std::size_t block = std::stoul(tensor.substr(5, layer - 6)) - 1;
    const auto names = llama_ ? llama_layer_names() : gpt2_layer_names();
    const auto found = std::ranges::find(names, name, &LayerName::layer);
    Placed placed{.stored = folder_block(spec_, block) + found->stored + tensor.substr(kind)};
    placed.transposed = !llama_ && !name.starts_with("norm") && tensor.ends_with(".weight");
    if (!llama_ && is_fused(name)) {
      placed.part = fused_place(name);
      placed.parts = 3;
    }
    return placed;
  }

 private:
  const ModelSpec& spec_;
  bool llama_;
};

// The tensors under their published names, in their published shapes.
ParameterVector published_values(const ModelSpec& spec, const ParameterLayout& layout, std::size_t frozen,
                                 const float* values) {
  const Places places(spec);
  auto target = std::make_shared<ParameterLayout>();
  for (const TensorInfo& tensor : layout.tensors()) {
    if (tensor.offset >= frozen) continue;
    const Placed placed = places.of(tensor.name);
    if (placed.part > 0) continue;
    std::vector<std::size_t> shape = tensor.shape;
    shape[0] *= placed.parts;
    if (placed.transposed) std::ranges::reverse(shape);
    target->add(placed.stored, shape);
  }
  ParameterVector out(target);
  for (const TensorInfo& tensor : layout.tensors()) {
    if (tensor.offset >= frozen) continue;
    const Placed placed = places.of(tensor.name);
    const auto to = out.tensor(*target->find(placed.stored));
    const float* from = values + tensor.offset;
    if (!placed.transposed) {
      std::copy_n(from, tensor.size, to.begin() + static_cast<std::ptrdiff_t>(placed.part * tensor.size));
      continue;
    }
    const std::size_t rows = tensor.shape[0];
    const std::size_t width = tensor.shape[1];
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t i = 0; i < width; ++i)
        to[i * rows * placed.parts + placed.part * rows + r] = from[r * width + i];
  }
  return out;
}

Ordered rotary_config(const RotarySpec& rotary, bool with_theta) {
  Ordered config = {
      {"rope_type", rotary.scaling == RotaryScaling::kNone ? "default" : name_of(rotary.scaling)}};
  if (with_theta) config["rope_theta"] = rotary.theta;
  if (rotary.scaling != RotaryScaling::kNone) config["factor"] = rotary.factor;
  if (rotary.scaling == RotaryScaling::kLlama3) {
    config["low_freq_factor"] = rotary.low;
    config["high_freq_factor"] = rotary.high;
    config["original_max_position_embeddings"] = static_cast<std::uint64_t>(rotary.original);
  }
  return config;
}

std::size_t longest_context(const ModelFile& model) {
  const std::size_t positions = model.task.model.language.positions;
  return positions > 0 ? positions : model.task.data.context;
}

Ordered llama_config(const ModelFile& model) {
  const LanguageSpec& spec = model.task.model.language;
  // rope_theta and rope_scaling are read by transformers 4, rope_parameters by version 5.
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", spec.width},
          {"num_hidden_layers", spec.layers},
          {"num_attention_heads", spec.heads},
          {"num_key_value_heads", spec.kv_heads},
          {"intermediate_size", spec.mlp_width},
          {"hidden_act", "silu"},
          {"rms_norm_eps", std::stod(number_text(spec.epsilon))},
          {"max_position_embeddings", longest_context(model)},
          {"rope_theta", spec.rotary.theta},
          {"rope_scaling",
           spec.rotary.scaling == RotaryScaling::kNone ? Ordered() : rotary_config(spec.rotary, false)},
          {"rope_parameters", rotary_config(spec.rotary, true)},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", spec.tied}};
}

Ordered gpt2_config(const ModelFile& model) {
  const LanguageSpec& spec = model.task.model.language;
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"n_embd", spec.width},
          {"n_layer", spec.layers},
          {"n_head", spec.heads},
          {"n_positions", longest_context(model)},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"tie_word_embeddings", spec.tied}};
}

Result<void> check_language(const ModelFile& model) {
  const std::string& kind = model.task.model.kind;
  if (kind == "llama" || kind == "transformer") return {};
  return Error{ErrorCode::kUnsupported,
               "model.kind is \"" + kind + "\"; only \"llama\" and \"transformer\" have a published form"};
}

Result<void> write_json(const std::filesystem::path& path, const Ordered& json) {
  return write_file_atomic(path, json_text(json, kIndent) + "\n");
}

}  // namespace

Result<std::string> export_folder(const ModelFile& model, std::size_t ranks,
                                  const std::filesystem::path& folder) {
  FEDGE_TRY_VOID(check_language(model));
  FEDGE_TRY_VOID(make_directory(folder));
  const bool llama = model.task.model.kind == "llama";
  Ordered config = llama ? llama_config(model) : gpt2_config(model);
  config["vocab_size"] = model.model->classes();
  config["torch_dtype"] = "float32";
  std::string left_out;
  const TokenizerSpec& tokenizer = model.task.data.tokenizer;
  if (tokenizer.kind == TokenizerKind::kVocabulary) {
    FEDGE_TRY(vocabulary, parse_vocabulary(tokenizer.table));
    config["bos_token_id"] = vocabulary.begin ? Ordered(*vocabulary.begin) : Ordered();
    config["eos_token_id"] = vocabulary.end ? Ordered(*vocabulary.end) : Ordered();
    FEDGE_TRY(text, tokenizer_json(vocabulary));
    FEDGE_TRY_VOID(write_file_atomic(folder / "tokenizer.json", text));
  } else {
    config["bos_token_id"] = config["eos_token_id"] = Ordered();
    left_out = "tokenizer.json: the model's tokenizer has no published form";
  }
  const ParameterLayout& layout = *model.model->layout();
  const Adapters* adapters = model.model->adapters();
  AlignedBuffer<float> merged;
  const float* values = model.values.values().data();
  if (adapters != nullptr) {
    AlignedBuffer<float> scratch(kProductScratch);
    merged = AlignedBuffer<float>(adapters->offset());
    adapters->merge(kernels(), model.values.values(), ranks, merged.data(), scratch.data());
    values = merged.data();
  }
  const std::size_t frozen = adapters == nullptr ? layout.size() : adapters->offset();
  FEDGE_TRY_VOID(write_safetensors(folder / "model.safetensors",
                                   published_values(model.task.model, layout, frozen, values),
                                   {{"format", "pt"}}));
  FEDGE_TRY_VOID(write_json(folder / "config.json", config));
  return left_out;
}

}  // namespace fedge::learn
