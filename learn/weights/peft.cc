// Adapters in the format of PEFT (Hugging Face), kind LORA: for each adapted layer "lora_A.weight" [r, in]
// and "lora_B.weight" [out, r], whose product is scaled by lora_alpha / r.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "learn/models/adapters.h"
#include "learn/models/language/kinds.h"
#include "learn/weights/export.h"
#include "learn/weights/names.h"
#include "learn/weights/weight_file.h"

namespace fedge::learn {
namespace {

using PeftJson = nlohmann::ordered_json;

constexpr const char* kPeftStem = "base_model.model.";
constexpr std::size_t kMaxPeftConfig = std::size_t{1} << 20;
constexpr std::size_t kMaxPeftRank = 1024;

// An adapted layer as PEFT has it: one of Fedge's matrices, or GPT-2's q, k and v together.
struct PeftLayer {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  std::size_t in = 0;
  std::size_t out = 0;
  struct Part {
    std::size_t matrix;     // in Adapters::matrices()
    std::size_t first_row;  // of B
  };
  std::vector<Part> parts;
};

// "blockN.attention.q.weight" as block number from 0 and "attention.q".
std::pair<std::size_t, std::string> split_name(const std::string& tensor) {
  const std::size_t layer = tensor.find('.') + 1;
  return {std::stoul(tensor.substr(5, layer - 6)) - 1, tensor.substr(layer, tensor.rfind('.') - layer)};
}

std::vector<PeftLayer> peft_layers(const ModelSpec& spec, const Adapters& adapters) {
  const bool llama = spec.kind == "llama";
  const auto names = llama ? llama_layer_names() : gpt2_layer_names();
  std::vector<PeftLayer> layers;
  for (std::size_t i = 0; i < adapters.matrices().size(); ++i) {
    const AdaptedMatrix& matrix = adapters.matrices()[i];
    const auto [block, layer] = split_name(matrix.name);
    const auto found = std::ranges::find(names, layer, &LayerName::layer);
    const std::string name =
        (llama ? "model.layers." : "transformer.h.") + std::to_string(block) + "." + found->stored;
    const bool fused = !llama && is_fused(layer);
    if (layers.empty() || layers.back().name != name)
      layers.push_back({.name = name, .in = matrix.in, .out = (fused ? 3 : 1) * matrix.out, .parts = {}});
    layers.back().parts.push_back({i, fused ? fused_place(layer) * matrix.out : 0});
  }
  return layers;
}

// A and B of a layer, with a rank for each part: B is zero where a row belongs to another part.
struct Factors {
  std::size_t rank = 0;
  std::vector<float> a;  // rank x in
  std::vector<float> b;  // out x rank
};

Factors factors_of(const PeftLayer& layer, const Adapters& adapters, std::span<const float> values,
                   std::size_t ranks) {
  Factors factors{.rank = ranks * layer.parts.size(), .a = {}, .b = {}};
  factors.a.resize(factors.rank * layer.in);
  factors.b.resize(layer.out * factors.rank);
  for (std::size_t part = 0; part < layer.parts.size(); ++part) {
    const AdaptedMatrix& matrix = adapters.matrices()[layer.parts[part].matrix];
    for (std::size_t j = 0; j < ranks; ++j) {
      const float* row = values.data() + adapters.shape().prefix(j).end;
      const std::size_t place = part * ranks + j;
      std::copy_n(row + matrix.a, matrix.in,
                  factors.a.begin() + static_cast<std::ptrdiff_t>(place * layer.in));
      for (std::size_t o = 0; o < matrix.out; ++o)
        factors.b[(layer.parts[part].first_row + o) * factors.rank + place] = row[matrix.b + o];
    }
  }
  return factors;
}

// The last parts of a name, which PEFT matches: "self_attn.q_proj".
std::string target_of(const std::string& name) {
  const std::size_t last = name.rfind('.');
  return name.substr(name.rfind('.', last - 1) + 1);
}

// Typed access to adapter_config.json.
class PeftConfig {
 public:
  PeftConfig(const PeftJson& json, std::string file) : json_(json), file_(std::move(file)) {}

  Error wrong(const std::string& key, const std::string& what) const {
    return {ErrorCode::kInvalid, file_ + ": " + key + " " + what};
  }
  const PeftJson& at(const std::string& key) const {
    static const PeftJson kNothing;
    const auto found = json_.find(key);
    return found == json_.end() ? kNothing : *found;
  }
  // kInvalid unless the key is missing, null, false, empty or this value.
  Result<void> only(const std::string& key, const PeftJson& value) const {
    const PeftJson& given = at(key);
    if (given.is_null() || given == value || given == false || (given.is_structured() && given.empty()))
      return {};
    return wrong(key, "is " + clean_text(json_text(given), 60) + ", which Fedge does not compute");
  }
  Result<double> positive(const std::string& key) const {
    const PeftJson& value = at(key);
    if (!value.is_number() || !(value.get<double>() > 0)) return wrong(key, "is not a number above 0");
    return value.get<double>();
  }
  // The value of a layer: a pattern's, if one of its keys is the end of the layer's name.
  Result<double> of_layer(const std::string& key, const std::string& pattern,
                          const std::string& layer) const {
    const PeftJson& patterns = at(pattern);
    if (patterns.is_object())
      for (const auto& [end, value] : patterns.items())
        if ((layer == end || layer.ends_with("." + end)) && value.is_number() && value.get<double>() > 0)
          return value.get<double>();
    return positive(key);
  }

 private:
  const PeftJson& json_;
  std::string file_;
};

Result<PeftJson> read_peft_config(const std::filesystem::path& path) {
  FEDGE_TRY(text, read_file(path, kMaxPeftConfig));
  PeftJson json = parse_ordered_json(text, kMaxJsonLevels);
  if (!json.is_object()) return Error{ErrorCode::kCorrupt, path.string() + ": is not a JSON object"};
  return json;
}

Result<void> check_peft_config(const PeftConfig& config) {
  if (config.at("peft_type") != "LORA") return config.wrong("peft_type", "is not \"LORA\"");
  FEDGE_TRY_VOID(config.only("bias", "none"));
  for (const char* key : {"use_dora", "modules_to_save", "lora_bias", "trainable_token_indices",
                          "alora_invocation_tokens", "layer_replication", "target_parameters", "use_qalora"})
    FEDGE_TRY_VOID(config.only(key, PeftJson()));
  return {};
}

std::string factor_name(const PeftLayer& layer, const char* factor) {
  return kPeftStem + layer.name + "." + factor + ".weight";
}

// Reads a layer's factors into the adapters of its parts.
class PeftReader {
 public:
  PeftReader(const WeightFile& file, const PeftConfig& config, const Adapters& adapters,
             ParameterVector& values)
      : file_(file), config_(config), adapters_(adapters), values_(values) {}

  Result<void> read(const PeftLayer& layer) {
    const StoredWeight* a = file_.find(factor_name(layer, "lora_A"));
    const StoredWeight* b = file_.find(factor_name(layer, "lora_B"));
    const std::size_t rank = a == nullptr || a->shape.size() != 2 ? 0 : a->shape[0];
    if (rank == 0 || rank > adapters_.rank() || b == nullptr || a->shape[1] != layer.in ||
        b->shape != std::vector<std::size_t>{layer.out, rank})
      return Error{ErrorCode::kInvalid, file_.path().string() + ": the factors of " + layer.name +
                                            " are missing or have a wrong shape"};
    std::vector<float> left(a->elements());
    std::vector<float> right(b->elements());
    FEDGE_TRY_VOID(file_.read(*a, left));
    FEDGE_TRY_VOID(file_.read(*b, right));
    FEDGE_TRY(alpha, config_.of_layer("lora_alpha", "alpha_pattern", layer.name));
    const double root = static_cast<double>(rank);
    const double scale = alpha / (config_.at("use_rslora") == true ? std::sqrt(root) : root);
    const auto factor = static_cast<float>(scale / static_cast<double>(adapters_.shape().scale));
    for (const PeftLayer::Part& part : layer.parts) {
      const AdaptedMatrix& matrix = adapters_.matrices()[part.matrix];
      for (std::size_t j = 0; j < rank; ++j) {
        float* row = values_.values().data() + adapters_.shape().prefix(j).end;
        std::copy_n(left.begin() + static_cast<std::ptrdiff_t>(j * layer.in), matrix.in, row + matrix.a);
        for (std::size_t o = 0; o < matrix.out; ++o)
          row[matrix.b + o] = factor * right[(part.first_row + o) * rank + j];
      }
    }
    return {};
  }

 private:
  const WeightFile& file_;
  const PeftConfig& config_;
  const Adapters& adapters_;
  ParameterVector& values_;
};

// The layers of Fedge that the file's tensors adapt, and their highest rank.
Result<AdapterSpec> found_adapters(const WeightFile& file, const ModelSpec& spec, const PeftConfig& config) {
  const bool llama = spec.kind == "llama";
  AdapterSpec adapter;
  std::set<std::string> targets;
  for (const auto& [name, weight] : file.weights()) {
    bool known = false;
    for (const LayerName& layer : llama ? llama_layer_names() : gpt2_layer_names()) {
      const std::string_view end = layer.layer;
      if (end.starts_with("norm") ||
          name.find("." + std::string(layer.stored) + ".lora_") == std::string::npos)
        continue;
      known = true;
      targets.insert(std::string(end.substr(end.find('.') + 1)));
    }
    if (!known || weight.shape.size() != 2)
      return Error{ErrorCode::kInvalid, file.path().string() + ": the tensor " +
                                            json_text(name.substr(0, 80)) +
                                            " does not belong to an adapter of this model"};
    if (name.find(".lora_A.") != std::string::npos) adapter.rank = std::max(adapter.rank, weight.shape[0]);
  }
  if (adapter.rank == 0 || adapter.rank > kMaxPeftRank)
    return Error{ErrorCode::kInvalid, file.path().string() + ": the rank of its adapters is " +
                                          std::to_string(adapter.rank) + ", expected 1 to " +
                                          std::to_string(kMaxPeftRank)};
  for (const std::string& target : adapter_targets(llama))
    if (targets.contains(target)) adapter.targets.push_back(target);
  FEDGE_TRY(alpha, config.positive("lora_alpha"));
  FEDGE_TRY(rank, config.positive("r"));
  adapter.scale = static_cast<float>(alpha / (config.at("use_rslora") == true ? std::sqrt(rank) : rank));
  return adapter;
}

}  // namespace

Result<void> export_adapters(const ModelFile& model, std::size_t ranks, const std::string& base,
                             const std::filesystem::path& folder) {
  FEDGE_TRY_VOID(make_directory(folder));
  const Adapters& adapters = *model.model->adapters();
  ranks = std::min(ranks, adapters.rank());
  const bool llama = model.task.model.kind == "llama";
  std::vector<std::string> targets;
  PeftJson rank_pattern = PeftJson::object();
  PeftJson alpha_pattern = PeftJson::object();
  const double alpha = std::stod(number_text(adapters.shape().scale)) * static_cast<double>(ranks);
  const std::vector<PeftLayer> layers = peft_layers(model.task.model, adapters);
  auto layout = std::make_shared<ParameterLayout>();
  for (const PeftLayer& layer : layers) {
    const std::size_t rank = ranks * layer.parts.size();
    layout->add(factor_name(layer, "lora_A"), {rank, layer.in});
    layout->add(factor_name(layer, "lora_B"), {layer.out, rank});
    const std::string target = target_of(layer.name);
    if (std::ranges::find(targets, target) == targets.end()) targets.push_back(target);
    if (layer.parts.size() == 1) continue;
    rank_pattern[target] = rank;
    alpha_pattern[target] = alpha * static_cast<double>(layer.parts.size());
  }
  ParameterVector values(layout);
  for (const PeftLayer& layer : layers) {
    const Factors factors = factors_of(layer, adapters, model.values.values(), ranks);
    std::ranges::copy(factors.a, values.tensor(*layout->find(factor_name(layer, "lora_A"))).begin());
    std::ranges::copy(factors.b, values.tensor(*layout->find(factor_name(layer, "lora_B"))).begin());
  }
  FEDGE_TRY_VOID(write_safetensors(folder / "adapter_model.safetensors", values, {{"format", "pt"}}));
  const PeftJson config = {{"peft_type", "LORA"},
                           {"task_type", "CAUSAL_LM"},
                           {"base_model_name_or_path", base},
                           {"r", ranks},
                           {"lora_alpha", alpha},
                           {"lora_dropout", 0.0},
                           {"target_modules", targets},
                           {"rank_pattern", rank_pattern},
                           {"alpha_pattern", alpha_pattern},
                           {"bias", "none"},
                           {"fan_in_fan_out", !llama},
                           {"inference_mode", true}};
  return write_file_atomic(folder / "adapter_config.json", json_text(config, 2) + "\n");
}

Result<ReadAdapters> read_adapters(const std::filesystem::path& folder, const ModelSpec& spec,
                                   std::size_t context, const ParameterVector& base, std::size_t tokens) {
  FEDGE_TRY(json, read_peft_config(folder / "adapter_config.json"));
  const PeftConfig config(json, (folder / "adapter_config.json").string());
  FEDGE_TRY_VOID(check_peft_config(config));
  FEDGE_TRY(file, open_safetensors_weights(folder / "adapter_model.safetensors"));
  ModelSpec adapted = spec;
  FEDGE_TRY(found, found_adapters(file, spec, config));
  adapted.adapter = found;
  FEDGE_TRY(model, make_model(adapted, {1, context, 1, true}, tokens));
  ParameterVector values(model->layout());
  std::ranges::copy(base.values(), values.values().begin());
  const std::vector<PeftLayer> layers = peft_layers(adapted, *model->adapters());
  if (file.weights().size() != 2 * layers.size())
    return Error{ErrorCode::kInvalid, file.path().string() + ": has " +
                                          std::to_string(file.weights().size()) +
                                          " tensors, expected 2 for each of the model's " +
                                          std::to_string(layers.size()) + " adapted layers"};
  PeftReader reader(file, config, *model->adapters(), values);
  for (const PeftLayer& layer : layers) FEDGE_TRY_VOID(reader.read(layer));
  return ReadAdapters{adapted.adapter, std::move(values)};
}

}  // namespace fedge::learn
