#include "learn/weights/import.h"

#include <algorithm>
#include <utility>

#include "core/config/document.h"
#include "core/text.h"
#include "learn/model.h"
#include "learn/model_file.h"
#include "learn/weights/export.h"

namespace fedge::learn {
namespace {

config::Value adapter_table(const AdapterSpec& adapter) {
  config::Array targets;
  for (const std::string& target : adapter.targets) targets.push_back({target, ""});
  return {config::Table{{"rank", {static_cast<std::int64_t>(adapter.rank), ""}},
                        {"scale", {std::stod(number_text(adapter.scale)), ""}},
                        {"targets", {std::move(targets), ""}}},
          ""};
}

config::Table language_table(const ModelSpec& spec) {
  config::Table table;
  if (spec.adapter.rank > 0) table.emplace("adapter", adapter_table(spec.adapter));
  const auto put = [&](const char* key, auto value) {
    table.emplace(key, config::Value{std::move(value), ""});
  };
  const auto size = [&](const char* key, std::size_t value) { put(key, static_cast<std::int64_t>(value)); };
  const LanguageSpec& language = spec.language;
  put("kind", spec.kind);
  size("layers", language.layers);
  size("width", language.width);
  size("heads", language.heads);
  put("tied", language.tied);
  size("positions", language.positions);
  if (spec.kind != "llama") return table;
  size("kv_heads", language.kv_heads);
  size("mlp_width", language.mlp_width);
  put("norm_epsilon", std::stod(number_text(language.epsilon)));
  const RotarySpec& rotary = language.rotary;
  put("rope_theta", rotary.theta);
  if (rotary.scaling == RotaryScaling::kNone) return table;
  put("rope_scaling", name_of(rotary.scaling));
  put("rope_factor", rotary.factor);
  if (rotary.scaling == RotaryScaling::kLinear) return table;
  put("rope_low", rotary.low);
  put("rope_high", rotary.high);
  put("rope_original", rotary.original);
  return table;
}

std::string task_of(const ModelSpec& spec, std::size_t context) {
  config::Table tokenizer{{"kind", {std::string("vocabulary"), ""}}};
  config::Table data{{"dataset", {std::string("text"), ""}},
                     {"context", {static_cast<std::int64_t>(context), ""}},
                     {"tokenizer", {std::move(tokenizer), ""}}};
  return config::canonical_toml({{"data", {std::move(data), ""}}, {"model", {language_table(spec), ""}}});
}

}  // namespace

std::string model_section(const ModelSpec& spec) {
  return config::canonical_toml({{"model", {language_table(spec), ""}}});
}

Result<ImportedModel> import_model(const std::filesystem::path& path, const ImportOptions& options) {
  FEDGE_TRY(published, open_published(path, options.tokenizer));
  if (options.context > published.spec.language.positions)
    return invalid("--context: " + std::to_string(options.context) + " tokens are more than the " +
                   std::to_string(published.spec.language.positions) + " of " + path.string());
  const std::size_t context =
      options.context > 0 ? options.context : std::min(published.spec.language.positions, kDefaultContext);
  const auto made = make_model(published.spec, {1, context, 1, true}, published.vocabulary.tokens.size());
  if (!made) return made.error().with_prefix(path.string() + ": ");
  FEDGE_TRY(values, read_weights(published, (*made)->layout()));
  if (!options.adapters.empty()) {
    FEDGE_TRY(adapted, read_adapters(options.adapters, published.spec, context, values,
                                     published.vocabulary.tokens.size()));
    published.spec.adapter = std::move(adapted.spec);
    values = std::move(adapted.values);
  }
  std::map<std::string, std::string> metadata = {{kTaskMetadata, task_of(published.spec, context)},
                                                 {kTokenizerMetadata, vocabulary_text(published.vocabulary)},
                                                 {"model_hash", to_hex(model_hash(values.values()))}};
  // Sizes beyond what a model file may have are found now, and not when the file is used.
  FEDGE_TRY_VOID(check_description(metadata, path.string()));
  return ImportedModel{std::move(published.format), std::move(values), std::move(metadata)};
}

}  // namespace fedge::learn
