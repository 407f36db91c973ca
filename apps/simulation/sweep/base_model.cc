#include "apps/simulation/sweep/base_model.h"

#include <system_error>

#include "apps/common.h"
#include "apps/simulation/results/finished_run.h"
#include "core/config/document.h"
#include "core/platform/files.h"
#include "core/platform/processes.h"
#include "run/run_config.h"

namespace fedge::apps {
namespace {

constexpr const char* kModel = "base.safetensors";

}  // namespace

bool has_base(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::filesystem::exists(directory / kModel, ignored);
}

Result<std::filesystem::path> pretrain_base(const Pretraining& pretraining, const BaseModelOptions& options) {
  const auto model = options.directory / kModel;
  const auto origin = options.directory / "base.toml";  // what the model was trained from
  FEDGE_TRY(document, load_document(pretraining.run_file, {}));
  FEDGE_TRY(config, run::read_run_config(document));
  std::string labels;
  for (const std::int64_t label : pretraining.labels)
    labels += (labels.empty() ? "" : ",") + std::to_string(label);
  const std::string wanted =
      config.canonical + (labels.empty() ? std::string() : "\n# labels " + labels + "\n");
  if (has_base(options.directory)) {
    const auto found = read_file(origin, config::kMaxDocumentBytes);
    if (found && *found == wanted) return model;
    if (!options.force)
      return Error{ErrorCode::kRefused, model.string() + " was not pretrained from " + pretraining.run_file +
                                            " as it is; name another directory with --out, or replace the "
                                            "model and all runs with --force"};
  }
  const auto log = options.directory / "base.log";
  std::vector<std::string> arguments = {
      options.program.string(), "pretrain", pretraining.run_file, "--out",
      model.string(),           "--force",  "--threads",          std::to_string(options.threads)};
  if (!labels.empty()) arguments.insert(arguments.end(), {"--labels", labels});
  for (const std::string& data : options.data) arguments.insert(arguments.end(), {"--data", data});
  std::error_code ignored;
  // An interrupted command leaves a model that is trained less. It is not taken for this one.
  std::filesystem::remove(origin, ignored);
  ChildProcesses processes;
  FEDGE_TRY_VOID(processes.start("pretraining", arguments, log));
  const auto ended = processes.wait(options.interrupted);
  if (options.interrupted()) return Error{ErrorCode::kUnavailable, "interrupted"};
  if (ended.failed()) return Error{ErrorCode::kUnavailable, ended.describe() + "; see " + log.string()};
  FEDGE_TRY_VOID(write_file_atomic(origin, wanted));
  return model;
}

}  // namespace fedge::apps
