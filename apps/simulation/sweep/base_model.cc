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
constexpr const char* kOrigin = "base.toml";

std::string labels_of(const Pretraining& pretraining) {
  std::string labels;
  for (const std::int64_t label : pretraining.labels)
    labels += (labels.empty() ? "" : ",") + std::to_string(label);
  return labels;
}

// What the model is trained from: the run file as read, and the labels.
Result<std::string> origin_of(const Pretraining& pretraining) {
  FEDGE_TRY(document, load_document(pretraining.run_file, {}));
  FEDGE_TRY(config, run::read_run_config(document));
  const std::string labels = labels_of(pretraining);
  return config.canonical + (labels.empty() ? std::string() : "\n# labels " + labels + "\n");
}

bool has_model(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::filesystem::exists(directory / kModel, ignored);
}

}  // namespace

Result<bool> has_base(const Pretraining& pretraining, const std::filesystem::path& directory) {
  FEDGE_TRY(wanted, origin_of(pretraining));
  const auto found = read_file(directory / kOrigin, config::kMaxDocumentBytes);
  return has_model(directory) && found && *found == wanted;
}

// The model gets its name once it is complete and its origin is written, so the two always belong together.
Result<std::filesystem::path> pretrain_base(const Pretraining& pretraining, const BaseModelOptions& options) {
  std::error_code ignored;
  const auto model = std::filesystem::weakly_canonical(options.directory, ignored) / kModel;
  FEDGE_TRY(present, has_base(pretraining, options.directory));
  if (present) return model;
  if (has_model(options.directory) && !options.force)
    return Error{ErrorCode::kRefused, model.string() + " was not pretrained from " + pretraining.run_file +
                                          " as it is; name another directory with --out, or replace the "
                                          "model and all runs with --force"};
  std::filesystem::remove(model, ignored);
  const auto unfinished = options.directory / "base.unfinished.safetensors";
  const auto log = options.directory / "base.log";
  std::vector<std::string> arguments = {
      options.program.string(), "pretrain", pretraining.run_file, "--out",
      unfinished.string(),      "--force",  "--threads",          std::to_string(options.threads)};
  if (const std::string labels = labels_of(pretraining); !labels.empty())
    arguments.insert(arguments.end(), {"--labels", labels});
  for (const std::string& data : options.data) arguments.insert(arguments.end(), {"--data", data});
  ChildProcesses processes;
  FEDGE_TRY_VOID(processes.start("pretraining", arguments, log));
  const auto ended = processes.wait(options.interrupted);
  if (options.interrupted()) return Error{ErrorCode::kUnavailable, "interrupted"};
  if (ended.failed()) return Error{ErrorCode::kUnavailable, ended.describe() + "; see " + log.string()};
  FEDGE_TRY(wanted, origin_of(pretraining));
  FEDGE_TRY_VOID(write_file_atomic(options.directory / kOrigin, wanted));
  std::error_code error;
  std::filesystem::rename(unfinished, model, error);
  if (error) return system_error("cannot name", model, error.value());
  return model;
}

}  // namespace fedge::apps
