#include "sim/first_model.h"

#include <utility>

#include "client/trainers/first_model.h"
#include "core/platform/files.h"
#include "learn/data/dataset.h"
#include "learn/models/external.h"

namespace fedge::sim {

bool lacks_first_model(const run::RunConfig& config) {
  return learn::is_external(config.task.model) && config.task.model.tensors.empty();
}

Result<config::Document> add_first_model(config::Document run_file, const run::RunConfig& config,
                                         const client::TrainerOptions& program,
                                         const std::filesystem::path& file) {
  FEDGE_TRY(info, learn::describe(config.task.data));
  FEDGE_TRY(model, client::ask_for_first_model(
                       program, {.client = ClientId(0),
                                 .run = config.name,
                                 .seed = config.seed,
                                 .task = config.task,
                                 .data = info,
                                 .clients = static_cast<std::uint32_t>(config.task.data.partition.clients)}));
  FEDGE_TRY_VOID(write_file_atomic(file, model));
  auto& table = std::get<config::Table>(run_file.root.at("model").data);
  table.insert_or_assign("base", config::Value{file.string(), "--trainer"});
  return run_file;
}

}  // namespace fedge::sim
