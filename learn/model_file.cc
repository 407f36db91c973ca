#include "learn/model_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/adapter_layout.h"
#include "core/config/document.h"
#include "core/config/own_part.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "learn/data/dataset.h"
#include "learn/models/adapters.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{17} << 30;

// Puts the tokenizer into the task.
void add_tokenizer(const std::string& table, config::Table& root) {
  const auto section = [](config::Table& from, const char* name) -> config::Table& {
    config::Value& value = from[name];
    if (!std::holds_alternative<config::Table>(value.data)) value.data = config::Table{};
    return std::get<config::Table>(value.data);
  };
  config::Table& tokenizer = section(section(root, "data"), "tokenizer");
  tokenizer["table"] = config::Value{table, ""};
  tokenizer.erase("table_hash");
}

Result<TaskSpec> read_description(const std::map<std::string, std::string>& metadata,
                                  const std::string& name) {
  FEDGE_TRY(document, config::parse_toml(metadata.at(kTaskMetadata), name));
  if (const auto table = metadata.find(kTokenizerMetadata); table != metadata.end())
    add_tokenizer(table->second, document.root);
  config::Reader root(document.root, "", document.name);
  TaskSpec task = read_task(root);
  // Ignores other sections: for a serverless run, the description is the whole run file.
  const std::vector<std::string>& own = task_sections();
  for (const auto& [key, value] : document.root)
    if (std::ranges::find(own, key) == own.end()) root.ignore(key);
  FEDGE_TRY_VOID(root.finish());
  return task;
}

Result<std::optional<std::uint64_t>> read_seed(const std::map<std::string, std::string>& metadata,
                                               const std::string& path) {
  const auto found = metadata.find(kSeedMetadata);
  if (found == metadata.end()) return std::optional<std::uint64_t>();
  const std::string& text = found->second;
  std::uint64_t seed = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (code != std::errc() || end != text.data() + text.size())
    return invalid(path + ": the metadata \"seed\" is not an integer");
  return std::optional(seed);
}

// Checks what the tensors' shapes do not show: that the base and the run have the same tokenizer, the same
// attention heads and the same adapters. A base without a description is accepted.
Result<void> check_base(const Safetensors& base, const Model& model, const DataSpec& data,
                        const std::string& path) {
  const ModelSpec& spec = model.spec();
  const auto described = base.metadata.find(kTaskMetadata);
  if (described == base.metadata.end()) return {};
  FEDGE_TRY(had, read_description(base.metadata, path + " (task)"));
  const auto another = [&](const char* key) {
    return invalid(path + " was trained with a different " + key + " than the run has");
  };
  const TokenizerSpec& tokenizer = had.data.tokenizer;
  if (is_text(data) && (tokenizer.kind != data.tokenizer.kind || tokenizer.table != data.tokenizer.table))
    return another("data.tokenizer");
  if (spec.kind != had.model.kind) return another("model.kind");
  if (had.model.language.heads != spec.language.heads) return another("model.heads");
  if (had.model.language.epsilon != spec.language.epsilon) return another("model.norm_epsilon");
  if (had.model.language.rotary != spec.language.rotary) return another("rotary embedding (model.rope_*)");
  if (base.values.layout().find(AdapterLayout::kTensor) == nullptr || !model.adapters()) return {};
  if (had.model.adapter.scale != spec.adapter.scale) return another("model.adapter.scale");
  FEDGE_TRY(former, make_model(had.model, model.input(), model.target()));
  if (!former->adapters() || !std::ranges::equal(former->adapters()->matrices(), model.adapters()->matrices(),
                                                 {}, &AdaptedMatrix::name, &AdaptedMatrix::name))
    return another("model.adapter.targets");
  return {};
}

}  // namespace

std::map<std::string, std::string> task_metadata(const std::string& task_text, const DataSpec& data,
                                                 std::uint64_t seed) {
  std::map<std::string, std::string> metadata = {{kTaskMetadata, task_text}};
  if (data.validation > 0) metadata.emplace(kSeedMetadata, number_text(seed));
  if (!data.tokenizer.table_hash.empty()) metadata.emplace(kTokenizerMetadata, data.tokenizer.table);
  return metadata;
}

Result<void> check_description(const std::map<std::string, std::string>& metadata, const std::string& name) {
  const auto task = read_description(metadata, name);
  return task ? Result<void>() : task.error();
}

Result<ModelFile> read_model_file(const std::filesystem::path& path) {
  FEDGE_TRY(file, open_safetensors(path, kMaxBytes));
  FEDGE_TRY(header, read_safetensors_header(file));
  const auto described = header.metadata.find(kTaskMetadata);
  if (described == header.metadata.end())
    return invalid(path.string() +
                   ": its metadata does not describe a model; use the model.safetensors of a run or of "
                   "\"fedge-sim pretrain\"");
  FEDGE_TRY(task, read_description(header.metadata, path.string() + " (task)"));
  FEDGE_TRY(info, describe(task.data));
  FEDGE_TRY(model, make_model(task.model, info.shape, info.target()));
  const std::string where = path.string() + ": ";
  if (const auto same = check_same_tensors(header.layout, *model->layout()); !same)
    return same.error().with_prefix(where);
  FEDGE_TRY(stored, read_safetensors(file, std::move(header)));
  auto values = arrange(stored.values, model->layout());
  if (!values) return values.error().with_prefix(where);
  FEDGE_TRY(seed, read_seed(stored.metadata, path.string()));
  return ModelFile{std::move(task), seed, std::move(model), std::move(*values)};
}

Result<std::string> base_hash(const std::filesystem::path& path) {
  FEDGE_TRY(base, read_safetensors(path, kMaxBytes));
  return to_hex(model_hash(base.values.values()));
}

Result<BaseDescription> describe_base(const std::filesystem::path& path) {
  FEDGE_TRY(file, open_safetensors(path, kMaxBytes));
  FEDGE_TRY(header, read_safetensors_header(file));
  if (!header.metadata.contains(kTaskMetadata)) return BaseDescription{};
  const std::string name = path.string() + " (task)";
  if (const auto sound = read_description(header.metadata, name); !sound) return sound.error();
  FEDGE_TRY(document, config::parse_toml(header.metadata.at(kTaskMetadata), name));
  if (const auto table = header.metadata.find(kTokenizerMetadata); table != header.metadata.end())
    add_tokenizer(table->second, document.root);
  const auto section = [](const config::Table& from, const char* key) {
    const auto found = from.find(key);
    const auto* table = found == from.end() ? nullptr : std::get_if<config::Table>(&found->second.data);
    return table == nullptr ? config::Table() : *table;
  };
  BaseDescription description{.model = section(document.root, "model")};
  for (const char* key : {"adapter", "base", "base_dtype", "base_hash", "personal", "tensors"})
    description.model.erase(key);
  const config::Table data = section(document.root, "data");
  if (data.contains("tokenizer")) description.tokenizer = section(data, "tokenizer");
  return description;
}

namespace {

// The initial parameters before they are rounded.
Result<ParameterVector> exact_parameters(const Model& model, const DataSpec& data, const Rng& rng) {
  ParameterVector values(model.layout());
  FEDGE_TRY_VOID(config::failure_as_error([&]() -> Result<void> {
    model.initialise(values.values(), rng);
    return {};
  }));
  const std::string& path = model.spec().base;
  if (path.empty()) return values;
  const auto fail = [&](const Error& error, const std::string& where) {
    return Error{error.code, "model.base: " + where + error.message};
  };
  const auto base = read_safetensors(path, kMaxBytes);
  if (!base) return fail(base.error(), "");
  const auto numbers = base->values.values();
  if (const auto wrong = std::ranges::find_if_not(numbers, [](float value) { return std::isfinite(value); });
      wrong != numbers.end())
    return fail(invalid(base->values.layout().describe(static_cast<std::size_t>(wrong - numbers.begin())) +
                        " is " + number_text(static_cast<double>(*wrong)) + ", which is not a finite number"),
                path + ": ");
  const std::string hash = to_hex(model_hash(base->values.values()));
  if (const std::string& wanted = model.spec().base_hash; !wanted.empty() && wanted != hash)
    return fail(
        invalid("is not the base model that the run started with: its hash is " + hash +
                ", but model.base_hash is " + wanted +
                "; restore the original file, or remove model.base_hash to start a new run with this file"),
        path + " ");
  if (const auto same = check_base(*base, model, data, path); !same) return fail(same.error(), "");
  const ParameterLayout& have = base->values.layout();
  auto want = std::make_shared<ParameterLayout>();
  for (const TensorInfo& tensor : model.layout()->tensors())
    if (tensor.order == TensorOrder::kRowMajor || have.find(tensor.name) != nullptr)
      want->add(tensor.name, tensor.shape);
  const auto arranged = arrange(base->values, want);
  if (!arranged) return fail(arranged.error(), path + ": ");
  for (const TensorInfo& tensor : want->tensors())
    std::ranges::copy(arranged->tensor(tensor), values.tensor(*values.layout().find(tensor.name)).begin());
  return values;
}

}  // namespace

Result<ParameterVector> initial_parameters(const Model& model, const DataSpec& data, const Rng& rng) {
  auto values = exact_parameters(model, data, rng);
  if (values) round_base(*model.layout(), model.spec().base_dtype, values->values());
  return values;
}

}  // namespace fedge::learn
