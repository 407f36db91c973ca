#include "apps/simulation/results/finished_run.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "core/config/document.h"
#include "core/platform/files.h"
#include "server/report/run_output.h"

namespace fedge::apps {
namespace {

constexpr std::uint64_t kDefaultSeed = 1;  // of run.seed

std::optional<std::uint64_t> integer_at(const config::Document& document, const char* key) {
  const config::Value* value = config::find(document.root, key);
  const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(&value->data);
  return number == nullptr || *number < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(*number));
}

}  // namespace

bool is_complete(const std::filesystem::path& results) {
  std::error_code ignored;
  return std::filesystem::exists(results / "model.safetensors", ignored) &&
         !std::filesystem::exists(results / kCheckpoints, ignored);
}

Result<FinishedRun> read_finished_run(const std::filesystem::path& directory) {
  const auto path = directory / "run.toml";
  FEDGE_TRY(text, read_file(path, config::kMaxDocumentBytes));
  FEDGE_TRY(document, config::parse_toml(text, path.string()));
  FEDGE_TRY(rounds, server::read_metrics(directory / "metrics.jsonl"));
  FEDGE_TRY(clients, sim::Participants::read(directory));
  // Clients that never took part have no row.
  if (const auto count = integer_at(document, "data.partition.clients"); count && !clients.trainings.empty())
    clients.trainings.insert(clients.trainings.begin(),
                             *count - std::min<std::uint64_t>(*count, clients.trainings.size()), 0.0);
  // A full reading of the run file may compute a noise multiplier, for seconds.
  const auto string_at = [&](const char* key, const char* otherwise) -> std::string {
    const config::Value* value = config::find(document.root, key);
    const auto* found = value == nullptr ? nullptr : std::get_if<std::string>(&value->data);
    return found == nullptr ? otherwise : *found;
  };
  return FinishedRun{.directory = directory,
                     .name = string_at("run.name", ""),
                     .seed = integer_at(document, "run.seed").value_or(kDefaultSeed),
                     .rounds = std::move(rounds),
                     .clients = std::move(clients),
                     .complete = is_complete(directory),
                     .failure = server::failure_of(directory)};
}

}  // namespace fedge::apps
