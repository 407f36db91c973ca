// A folder as on Hugging Face. config.json is read for every key that changes what the model computes; a
// value that Fedge does not compute is refused.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/detail/json.h"
#include "core/text.h"
#include "learn/weights/names.h"
#include "learn/weights/published.h"

namespace fedge::learn {
namespace {

using Config = nlohmann::json;

constexpr std::size_t kMaxConfig = std::size_t{16} << 20;
constexpr std::size_t kMaxShards = 256;

Result<Config> read_config(const std::filesystem::path& path) {
  FEDGE_TRY(text, read_file(path, kMaxConfig));
  Config config = parse_json(text);
  if (!config.is_object()) return Error{ErrorCode::kCorrupt, path.string() + ": is not a JSON object"};
  return config;
}

// Typed access to config.json; errors name the key.
class ConfigKeys {
 public:
  ConfigKeys(const Config& config, std::string file) : config_(config), file_(std::move(file)) {}

  Error wrong(const std::string& key, const std::string& what) const {
    return {ErrorCode::kInvalid, file_ + ": " + key + " " + what};
  }
  const Config& at(const std::string& key) const {
    static const Config kNothing;
    const auto found = config_.find(key);
    return found == config_.end() ? kNothing : *found;
  }
  Result<double> number(const std::string& key, std::optional<double> fallback = std::nullopt) const {
    const Config& value = at(key);
    if (value.is_null() && fallback) return *fallback;
    if (!value.is_number()) return wrong(key, value.is_null() ? "is missing" : "is not a number");
    return value.get<double>();
  }
  Result<std::size_t> size(const std::string& key, std::optional<std::size_t> fallback = std::nullopt) const {
    const Config& value = at(key);
    if (value.is_null() && fallback) return *fallback;
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() == 0 ||
        value.get<std::uint64_t>() > (std::uint64_t{1} << 24))
      return wrong(key, value.is_null() ? "is missing" : "is not a size");
    return value.get<std::size_t>();
  }
  bool flag(const std::string& key, bool fallback) const {
    const Config& value = at(key);
    return value.is_boolean() ? value.get<bool>() : fallback;
  }
  std::string text(const std::string& key) const {
    const Config& value = at(key);
    return value.is_string() ? value.get<std::string>() : std::string();
  }
  // kInvalid unless the key is missing or has one of these values.
  Result<void> only(const std::string& key, const std::vector<Config>& allowed) const {
    const Config& value = at(key);
    if (value.is_null() || std::ranges::find(allowed, value) != allowed.end()) return {};
    return wrong(key, "is " + clean_text(json_text(value), 60) + ", which Fedge does not compute");
  }

 private:
  const Config& config_;
  std::string file_;
};

// Until version 4 of transformers "rope_theta" and "rope_scaling", from version 5 on both in
// "rope_parameters".
Result<RotarySpec> read_rotary_config(const ConfigKeys& keys, const std::string& file) {
  RotarySpec rotary;
  const Config& both = keys.at("rope_parameters");
  const Config& scaling = both.is_object() ? both : keys.at("rope_scaling");
  const ConfigKeys inner(scaling, file);
  FEDGE_TRY(outer_theta, keys.number("rope_theta", rotary.theta));
  rotary.theta = outer_theta;
  if (scaling.is_null()) return rotary;
  if (!scaling.is_object()) return keys.wrong("rope_scaling", "is not an object");
  FEDGE_TRY(theta, inner.number("rope_theta", rotary.theta));
  rotary.theta = theta;
  const std::string kind = inner.at("rope_type").is_null() ? inner.text("type") : inner.text("rope_type");
  if (kind.empty() || kind == "default") return rotary;
  if (kind != "linear" && kind != "llama3")
    return keys.wrong("rope_scaling",
                      "is of the type " + json_text(kind.substr(0, 40)) + ", which Fedge does not compute");
  FEDGE_TRY(factor, inner.number("factor"));
  rotary.factor = factor;
  rotary.scaling = RotaryScaling::kLinear;
  if (kind == "linear") return rotary;
  FEDGE_TRY(low, inner.number("low_freq_factor"));
  FEDGE_TRY(high, inner.number("high_freq_factor"));
  FEDGE_TRY(original, inner.number("original_max_position_embeddings"));
  rotary.scaling = RotaryScaling::kLlama3;
  rotary.low = low;
  rotary.high = high;
  rotary.original = original;
  return rotary;
}

Result<void> read_llama_config(const ConfigKeys& keys, const std::string& file, PublishedModel& model) {
  for (const auto& [key, allowed] : std::map<std::string, std::vector<Config>>{{"hidden_act", {"silu"}},
                                                                               {"attention_bias", {false}},
                                                                               {"mlp_bias", {false}},
                                                                               {"sliding_window", {}}})
    FEDGE_TRY_VOID(keys.only(key, allowed));
  FEDGE_TRY(layers, keys.size("num_hidden_layers"));
  if (layers > kMaxBlocks) return keys.wrong("num_hidden_layers", "is above " + std::to_string(kMaxBlocks));
  FEDGE_TRY(width, keys.size("hidden_size"));
  FEDGE_TRY(heads, keys.size("num_attention_heads"));
  FEDGE_TRY(shared, keys.size("num_key_value_heads", heads));
  FEDGE_TRY(hidden, keys.size("intermediate_size"));
  FEDGE_TRY(positions, keys.size("max_position_embeddings", 2048));
  FEDGE_TRY(epsilon, keys.number("rms_norm_eps", 1e-6));
  FEDGE_TRY(head, keys.size("head_dim", width / heads));
  if (head * heads != width) return keys.wrong("head_dim", "is not hidden_size / num_attention_heads");
  FEDGE_TRY(rotary, read_rotary_config(keys, file));
  model.spec.kind = "llama";
  model.spec.language = {.layers = layers,
                         .width = width,
                         .heads = heads,
                         .tied = keys.flag("tie_word_embeddings", false),
                         .positions = positions,
                         .kv_heads = shared,
                         .mlp_width = hidden,
                         .epsilon = static_cast<float>(epsilon),
                         .rotary = rotary};
  return {};
}

Result<void> read_gpt2_config(const ConfigKeys& keys, PublishedModel& model) {
  for (const auto& [key, allowed] :
       std::map<std::string, std::vector<Config>>{{"activation_function", {"gelu_new", "gelu_pytorch_tanh"}},
                                                  {"layer_norm_epsilon", {1e-5}},
                                                  {"scale_attn_weights", {true}},
                                                  {"scale_attn_by_inverse_layer_idx", {false}},
                                                  {"add_cross_attention", {false}}})
    FEDGE_TRY_VOID(keys.only(key, allowed));
  FEDGE_TRY(layers, keys.size("n_layer"));
  if (layers > kMaxBlocks) return keys.wrong("n_layer", "is above " + std::to_string(kMaxBlocks));
  FEDGE_TRY(width, keys.size("n_embd"));
  FEDGE_TRY(heads, keys.size("n_head"));
  FEDGE_TRY(positions, keys.size("n_positions"));
  FEDGE_TRY_VOID(keys.only("n_inner", {4 * width}));
  model.spec.kind = "transformer";
  model.spec.language = {.layers = layers,
                         .width = width,
                         .heads = heads,
                         .tied = keys.flag("tie_word_embeddings", true),
                         .positions = positions};
  return {};
}

// Opens the weights and returns in which file each tensor is.
Result<std::map<std::string, std::size_t>> open_weights(const std::filesystem::path& folder,
                                                        PublishedModel& model) {
  const std::filesystem::path index = folder / "model.safetensors.index.json";
  std::set<std::string> names;
  std::error_code ignored;
  if (std::filesystem::exists(index, ignored)) {
    FEDGE_TRY(config, read_config(index));
    const auto map = config.find("weight_map");
    if (map == config.end() || !map->is_object())
      return Error{ErrorCode::kCorrupt, index.string() + ": has no weight_map"};
    for (const auto& entry : map->items()) {
      const std::string name = entry.value().is_string() ? entry.value().get<std::string>() : "";
      // A file of this folder, not a path out of it.
      if (name.empty() || std::filesystem::path(name).filename() != name)
        return Error{ErrorCode::kCorrupt,
                     index.string() + ": " + json_text(name.substr(0, 80)) + " is no file name"};
      names.insert(name);
    }
    if (names.empty() || names.size() > kMaxShards)
      return Error{ErrorCode::kCorrupt,
                   index.string() + ": names " + std::to_string(names.size()) + " files"};
  } else {
    names.insert("model.safetensors");
  }
  std::map<std::string, std::size_t> where;
  for (const std::string& name : names) {
    FEDGE_TRY(file, open_safetensors_weights(folder / name));
    for (const auto& [tensor, weight] : file.weights())
      if (!where.emplace(tensor, model.files.size()).second)
        return invalid(folder.string() + ": the tensor " + json_text(tensor.substr(0, 80)) +
                       " is in two files");
    model.files.push_back(std::move(file));
  }
  return where;
}

class PartWriter {
 public:
  PartWriter(PublishedModel& model, const std::map<std::string, std::size_t>& where)
      : model_(model), where_(where) {}

  // The stored name may lack a prefix that some files have.
  Result<void> add(const std::string& tensor, const std::string& stored,
                   Arrangement arrangement = Arrangement::kSame, std::size_t first_row = 0) {
    for (const char* prefix : {"", "model.", "transformer."}) {
      const auto found = where_.find(prefix + stored);
      if (found == where_.end()) continue;
      model_.parts.push_back({.tensor = tensor,
                              .file = found->second,
                              .stored = found->first,
                              .arrangement = arrangement,
                              .first_row = first_row});
      return {};
    }
    return invalid(model_.files.front().path().parent_path().string() + ": the tensor " + stored +
                   " is missing");
  }

 private:
  PublishedModel& model_;
  const std::map<std::string, std::size_t>& where_;
};

Result<void> add_llama_parts(PublishedModel& model, PartWriter& parts) {
  FEDGE_TRY_VOID(parts.add("token_embedding", "embed_tokens.weight"));
  for (std::size_t i = 0; i < model.spec.language.layers; ++i) {
    const std::string to = "block" + std::to_string(i + 1) + ".";
    const std::string from = "layers." + std::to_string(i) + ".";
    for (const LayerName& name : llama_layer_names())
      FEDGE_TRY_VOID(parts.add(to + name.layer + ".weight", from + name.stored + ".weight"));
  }
  FEDGE_TRY_VOID(parts.add("norm.weight", "norm.weight"));
  if (model.spec.language.tied) return {};
  return parts.add("head.weight", "lm_head.weight");
}

Result<void> add_gpt2_parts(PublishedModel& model, PartWriter& parts) {
  FEDGE_TRY_VOID(parts.add("token_embedding", "wte.weight"));
  FEDGE_TRY_VOID(parts.add("position_embedding", "wpe.weight"));
  const auto both = [&](const std::string& to, const std::string& from, Arrangement arrangement,
                        std::size_t row) -> Result<void> {
    FEDGE_TRY_VOID(parts.add(to + ".weight", from + ".weight", arrangement, row));
    return parts.add(to + ".bias", from + ".bias", Arrangement::kSame, row);
  };
  for (std::size_t i = 0; i < model.spec.language.layers; ++i) {
    const std::string to = "block" + std::to_string(i + 1) + ".";
    const std::string from = "h." + std::to_string(i) + ".";
    for (const LayerName& name : gpt2_layer_names()) {
      const bool norm = std::string_view(name.layer).starts_with("norm");
      const std::size_t row = is_fused(name.layer) ? fused_place(name.layer) * model.spec.language.width : 0;
      FEDGE_TRY_VOID(both(to + name.layer, from + name.stored,
                          norm ? Arrangement::kSame : Arrangement::kTransposed, row));
    }
  }
  FEDGE_TRY_VOID(both("norm", "ln_f", Arrangement::kSame, 0));
  if (model.spec.language.tied) return {};
  return parts.add("head.weight", "lm_head.weight");
}

// The first token of a number or list.
std::optional<Token> first_token(const Config& value, std::size_t tokens) {
  const Config& one = value.is_array() && !value.empty() ? value[0] : value;
  if (!one.is_number_unsigned() || one.get<std::uint64_t>() >= tokens) return std::nullopt;
  return one.get<Token>();
}

Result<Vocabulary> read_folder_vocabulary(const std::filesystem::path& folder,
                                          const std::filesystem::path& tokenizer) {
  if (!tokenizer.empty()) return read_vocabulary_file(tokenizer);
  std::error_code ignored;
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (std::filesystem::exists(folder / name, ignored)) return read_vocabulary_file(folder / name);
  return Error{
      ErrorCode::kNotFound,
      folder.string() + ": there is neither tokenizer.json nor tokenizer.model; name one with --tokenizer"};
}

}  // namespace

Result<PublishedModel> open_hugging_face(const std::filesystem::path& folder,
                                         const std::filesystem::path& tokenizer) {
  const std::string name = (folder / "config.json").string();
  FEDGE_TRY(config, read_config(folder / "config.json"));
  const ConfigKeys keys(config, name);
  PublishedModel model{.format = "Hugging Face folder"};
  const std::string family = keys.text("model_type");
  const bool gpt2 = family == "gpt2";
  if (family != "llama" && family != "mistral" && !gpt2)
    return keys.wrong("model_type", "is " + json_text(family.substr(0, 40)) +
                                        "; supported are \"llama\", \"mistral\" and \"gpt2\"");
  FEDGE_TRY_VOID(gpt2 ? read_gpt2_config(keys, model) : read_llama_config(keys, name, model));
  FEDGE_TRY(tokens, keys.size("vocab_size"));
  FEDGE_TRY(where, open_weights(folder, model));
  PartWriter parts(model, where);
  FEDGE_TRY_VOID(gpt2 ? add_gpt2_parts(model, parts) : add_llama_parts(model, parts));
  const StoredWeight* embedding = model.files[model.parts.front().file].find(model.parts.front().stored);
  if (embedding->shape.front() != tokens)
    return keys.wrong("vocab_size", "is " + std::to_string(tokens) + ", but the embedding has " +
                                        std::to_string(embedding->shape.front()) + " rows");
  FEDGE_TRY(vocabulary, read_folder_vocabulary(folder, tokenizer));
  model.vocabulary = std::move(vocabulary);
  if (const auto end = first_token(keys.at("eos_token_id"), tokens)) model.vocabulary.end = end;
  if (const auto filled = fill_vocabulary(model.vocabulary, tokens); !filled)
    return filled.error().with_prefix(folder.string() + ": ");
  return model;
}

}  // namespace fedge::learn
