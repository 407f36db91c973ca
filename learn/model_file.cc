#include "learn/model_file.h"

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

}  // namespace fedge::learn
