#include "learn/model_file.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/config/document.h"
#include "core/safetensors.h"
#include "learn/data/dataset.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{17} << 30;

Result<TaskSpec> read_task_text(const std::string& text, const std::string& name) {
  FEDGE_TRY(document, config::parse_toml(text, name));
  config::Reader root(document.root, "", document.name);
  TaskSpec task = read_task(root);
  for (const char* other : {"compression", "status"}) root.ignore(other);
  FEDGE_TRY_VOID(root.finish());
  return task;
}

// That what a text's tokens are is the same in a base as in the run; a base that does not say is believed.
Result<void> check_tokenizer(const std::map<std::string, std::string>& metadata, const DataSpec& data,
                             const std::string& path) {
  const auto described = metadata.find(kTaskMetadata);
  if (described == metadata.end() || !is_text(data)) return {};
  FEDGE_TRY(task, read_task_text(described->second, path + " (task)"));
  const TokenizerSpec& had = task.data.tokenizer;
  if (had.kind == data.tokenizer.kind && had.table == data.tokenizer.table) return {};
  return invalid(path + " was trained with another data.tokenizer");
}

}  // namespace

Result<ModelFile> read_model_file(const std::filesystem::path& path) {
  FEDGE_TRY(file, read_safetensors(path, kMaxBytes));
  const auto described = file.metadata.find(kTaskMetadata);
  if (described == file.metadata.end())
    return invalid(path.string() +
                   ": its metadata does not say which model it is; a run's model.safetensors and what "
                   "\"fedge-sim pretrain\" writes do");
  FEDGE_TRY(task, read_task_text(described->second, path.string() + " (task)"));
  FEDGE_TRY(info, describe(task.data));
  FEDGE_TRY(model, make_model(task.model, info.shape, info.outputs));
  auto values = arrange(file.values, model->layout());
  if (!values) return Error{values.error().code, path.string() + ": " + values.error().message};
  return ModelFile{std::move(task), std::move(model), std::move(*values)};
}

Result<ParameterVector> initial_parameters(const Model& model, const DataSpec& data, const Rng& rng) {
  ParameterVector values(model.layout());
  model.initialise(values.values(), rng);
  const std::string& path = model.spec().base;
  if (path.empty()) return values;
  const auto fail = [&](const Error& error, const std::string& where) {
    return Error{error.code, "model.base: " + where + error.message};
  };
  const auto base = read_safetensors(path, kMaxBytes);
  if (!base) return fail(base.error(), "");
  if (const auto same = check_tokenizer(base->metadata, data, path); !same) return fail(same.error(), "");
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

}  // namespace fedge::learn
