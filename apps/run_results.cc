#include "apps/run_results.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "apps/common.h"
#include "learn/data/dataset.h"
#include "server/data_directory.h"
#include "server/report/model_files.h"
#include "server/store/sqlite_store.h"

namespace fedge::apps {
namespace {

Event completed(server::RunNumber run, const server::RoundMetrics& metrics) {
  Event event{Severity::kInfo, "round.completed", {}};
  event.with("round", static_cast<std::int64_t>(metrics.round));
  const auto [accuracy, loss, rmse] = server::shown_results(metrics);
  if (!std::isnan(accuracy)) event.with("accuracy", accuracy);
  if (!std::isnan(rmse)) event.with("rmse", rmse);
  if (!std::isnan(loss)) event.with("loss", loss);
  event.with("model", metrics.model_hash.substr(0, 12)).with("run", run.value());
  return event;
}

}  // namespace

Result<std::optional<std::string>> run_going_on(const std::filesystem::path& data_directory,
                                                const run::RunConfig& config) {
  FEDGE_TRY(store, server::open_sqlite_store(server::run_store_path(data_directory)));
  FEDGE_TRY(runs, store->runs());
  for (const server::RunRecord& run : runs)
    if (run.started != 0 && !server::has_ended(run.status) && run.document == config.canonical)
      return std::optional(config.canonical);
  return std::optional<std::string>();
}

Result<bool> would_continue(const std::filesystem::path& data_directory,
                            std::optional<server::RunNumber> number) {
  FEDGE_TRY(store, server::open_sqlite_store(server::run_store_path(data_directory)));
  FEDGE_TRY(runs, store->runs());
  return std::ranges::any_of(runs, [&](const server::RunRecord& run) {
    return (!number || run.number == *number) &&
           (run.status == server::RunStatus::kPending || run.status == server::RunStatus::kRunning);
  });
}

Result<void> RunResults::begin(const server::RunRecord& run, const run::RunConfig& config,
                               const std::vector<server::RoundMetrics>& history) {
  const auto directory =
      is_shown(run.number) ? shown_->out : server::run_results(data_directory_, run.number);
  FEDGE_TRY(output, server::RunOutput::create(directory, config, version()));
  server::remove_models_after(directory, history.empty() ? 0 : history.back().round);
  const std::lock_guard lock(mutex_);
  const auto place = outputs_.insert_or_assign(run.number, std::move(output)).first;
  if (is_shown(run.number)) {
    table_ = std::make_unique<server::RoundTable>(stdout, config.rounds);
    table_->begin(config.name, learn::task_of(config.task.data));
  }
  for (const auto& metrics : history) {
    FEDGE_TRY_VOID(place->second.add(metrics));
    if (is_shown(run.number)) table_->add(metrics);
  }
  return {};
}

Result<void> RunResults::add(server::RunNumber run, const server::RoundMetrics& metrics) {
  if (is_shown(run))
    table_->add(metrics);
  else
    log_(completed(run, metrics));
  return outputs_.at(run).add(metrics);
}

Result<void> RunResults::keep(server::RunNumber run, RoundNumber round,
                              const std::vector<server::FinalModel>& models) {
  const std::lock_guard lock(mutex_);
  return outputs_.at(run).keep(round.value(), models);
}

Result<void> RunResults::finish(server::RunNumber run, const std::vector<server::FinalModel>& models,
                                const std::string& failure) {
  if (is_shown(run)) table_->finish();
  FEDGE_TRY_VOID(outputs_.at(run).finish(models, failure));
  if (is_shown(run)) summary_ = outputs_.at(run).summary();
  return {};
}

}  // namespace fedge::apps
