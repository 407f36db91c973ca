#include "apps/commands/run_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "apps/commands/command_table.h"
#include "apps/commands/listing.h"
#include "apps/common.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "server/audit_log.h"
#include "server/coordinator/run_parts.h"
#include "server/data_directory.h"
#include "server/report/console.h"
#include "server/report/metrics.h"
#include "server/store/run_evidence.h"
#include "server/store/sqlite_store.h"

namespace fedge::apps {
namespace {

struct RunOptions {
  std::string data_directory;
  std::string format = "table";
  std::string file;
  std::vector<std::string> assignments;
  std::int64_t number = 0;
  std::string reason;

  std::string print(const Listing& list) const { return format == "json" ? list.json() : list.table(); }
};

// Opens the store; does not create one.
Result<std::unique_ptr<server::RunStore>> open_store(const RunOptions& options) {
  const auto path = server::run_store_path(options.data_directory);
  std::error_code unreadable;
  const bool exists = std::filesystem::exists(path, unreadable);
  if (unreadable) return system_error("cannot open", path, unreadable.value());
  if (!exists) {
    FEDGE_TRY_VOID(server::check_runs_kept(options.data_directory, server::RunNumber(0)));
    return Error{ErrorCode::kNotFound, "there are no runs in " + options.data_directory + ": " +
                                           path.string() +
                                           " does not exist; is this the coordinator's data directory?"};
  }
  return server::open_sqlite_store(path);
}

Result<server::RunRecord> find_run(server::RunStore& store, const RunOptions& options) {
  auto run = store.run(server::RunNumber(options.number));
  if (!run && run.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, run.error().message + "; list runs with: fedge run ls"};
  return run;
}

Listing::Cell time_or_nothing(server::UnixSeconds time) {
  return time == 0 ? Listing::Cell() : Listing::Cell(server::calendar_text(time));
}

std::vector<std::string> run_columns() {
  return {"run", "name", "state", "rounds", "submitted", "started", "ended", "reason"};
}

Result<std::vector<Listing::Cell>> row_of(server::RunStore& store, const server::RunRecord& run) {
  FEDGE_TRY(rounds, store.metrics(run.number));
  return std::vector<Listing::Cell>{
      std::int64_t{run.number.value()},     run.name,
      std::string(name_of(run.status)),     static_cast<std::int64_t>(rounds.size()),
      server::calendar_text(run.submitted), time_or_nothing(run.started),
      time_or_nothing(run.ended),           run.reason.empty() ? Listing::Cell() : Listing::Cell(run.reason)};
}

// Cuts a long reason so that the table stays readable; `fedge run show` has all of it.
void shorten(Listing::Cell& reason) {
  constexpr std::size_t kShown = 80;
  if (auto* text = std::get_if<std::string>(&reason); text != nullptr && text->size() > kShown)
    *text = clean_text(*text, kShown) + "...";
}

Result<std::string> list_runs(const RunOptions& options) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(runs, store->runs());
  Listing list(run_columns());
  for (const server::RunRecord& run : runs) {
    FEDGE_TRY(row, row_of(*store, run));
    if (options.format != "json") shorten(row.back());
    list.add(std::move(row));
  }
  return options.print(list);
}

std::string where(const RunOptions& options) { return "run " + std::to_string(options.number) + ": "; }

// The metrics of the last round whose model was evaluated; nothing if there is none.
Result<std::optional<server::RoundMetrics>> last_evaluation(server::RunStore& store,
                                                            const RunOptions& options) {
  FEDGE_TRY(lines, store.metrics(server::RunNumber(options.number)));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    FEDGE_TRY(round, server::parse_metrics(*line, where(options)));
    if (server::shown_results(round).measured()) return std::optional(std::move(round));
  }
  return std::optional<server::RoundMetrics>();
}

// Results of `fedge-coordinator --run` are in its --out, which the data directory does not know.
Listing::Cell results_of(const RunOptions& options) {
  const auto directory = server::run_results(options.data_directory, server::RunNumber(options.number));
  std::error_code ignored;
  return std::filesystem::exists(directory, ignored) ? Listing::Cell(directory.string()) : Listing::Cell();
}

Result<std::string> show_run(const RunOptions& options) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(run, find_run(*store, options));
  FEDGE_TRY(row, row_of(*store, run));
  FEDGE_TRY(evaluated, last_evaluation(*store, options));
  std::vector<std::string> columns = run_columns();
  const server::ShownResults shown = evaluated ? server::shown_results(*evaluated) : server::ShownResults();
  columns.insert(columns.end(), {shown.has_error() ? "rmse" : "accuracy", "results"});
  if (shown.has_error())
    row.push_back(shown.score() + " after round " + std::to_string(evaluated->round));
  else
    row.push_back(evaluated
                      ? Listing::Fraction{shown.accuracy, " after round " + std::to_string(evaluated->round)}
                      : Listing::Cell());
  row.push_back(results_of(options));
  Listing list(columns);
  list.add(std::move(row));
  if (options.format == "json") return list.object();
  return list.lines() + "\n" + run.document;
}

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return std::isnan(value) ? "" : text;
}

// JSON output is the lines of metrics.jsonl.
Result<std::string> log_run(const RunOptions& options) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(run, find_run(*store, options));
  FEDGE_TRY(lines, store->metrics(run.number));
  if (options.format == "json") {
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }
  std::vector<server::RoundMetrics> rounds;
  for (const std::string& line : lines) {
    FEDGE_TRY(round, server::parse_metrics(line, where(options)));
    rounds.push_back(std::move(round));
  }
  const bool error =
      std::ranges::any_of(rounds, [](const auto& round) { return server::shown_results(round).has_error(); });
  Listing list({"round", error ? "RMSE" : "accuracy", "loss", "clients", "since start", "model"});
  for (const server::RoundMetrics& round : rounds) {
    list.add({static_cast<std::int64_t>(round.round),
              server::shown_results(round).measured() ? server::shown_results(round).score() : "",
              figure(server::shown_results(round).loss),
              std::to_string(round.clients_completed) + "/" + std::to_string(round.clients_selected),
              server::format_seconds(round.wall_seconds), round.model_hash.substr(0, 12)});
  }
  return list.table();
}

// Five significant digits.
std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string rounded(const std::optional<learn::Estimate>& estimate) {
  return estimate ? rounded(estimate->value) : "";
}

std::string table_of(const learn::DataStatistics& statistics) {
  Listing columns({"column", "values", "missing", "mean", "deviation", "minimum", "25 %", "median", "75 %",
                   "maximum", "within"});
  for (const learn::ColumnStatistics& one : statistics.columns) {
    const bool known = one.count > 0 && one.agreed.empty();
    double error = 0;
    for (const auto& estimate :
         {one.minimum, one.lower_quartile, one.median, one.upper_quartile, one.maximum})
      if (estimate) error = std::max(error, estimate->error);
    columns.add({one.name, static_cast<std::int64_t>(one.count), static_cast<std::int64_t>(one.missing),
                 known ? rounded(one.mean) : "", known ? rounded(one.deviation) : "", rounded(one.minimum),
                 rounded(one.lower_quartile), rounded(one.median), rounded(one.upper_quartile),
                 rounded(one.maximum), known ? rounded(error) : ""});
  }
  std::string text = server::count_text(statistics) + "\n\n" + columns.table();
  for (const learn::ColumnStatistics& one : statistics.columns)
    if (!one.agreed.empty()) text += "\n" + one.name + ": " + server::agreed_text(one) + "\n";
  if (statistics.labels.empty()) return text;
  Listing labels({"class", statistics.samples > 0 ? "samples" : "clients"});
  for (const auto& label : statistics.labels)
    labels.add({label.name, static_cast<std::int64_t>(label.count)});
  return text + "\n" + labels.table();
}

// JSON output is the object in the first line of metrics.jsonl.
Result<std::string> show_statistics(const RunOptions& options) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(run, find_run(*store, options));
  FEDGE_TRY(lines, store->metrics(run.number));
  for (const std::string& line : lines) {
    FEDGE_TRY(round, server::parse_metrics(line, where(options)));
    if (!round.statistics) continue;
    return options.format == "json" ? server::to_json(*round.statistics) + "\n" : table_of(*round.statistics);
  }
  return Error{
      ErrorCode::kNotFound,
      where(options) +
          "there are no statistics of the clients' data; a run with data.normalise = \"federated\" has "
          "them after its first round"};
}

// Records the change in the audit log before it takes effect. A submitted run has an id but no number yet.
Result<std::uint64_t> note(const RunOptions& options, const char* action, const server::RunRecord& run) {
  std::vector<std::pair<std::string, std::string>> details = {{"run_id", server::text_of(run.id)}};
  if (run.number.value() > 0) details.emplace_back("run", std::to_string(run.number.value()));
  if (!options.reason.empty()) details.emplace_back("reason", options.reason);
  return server::AuditLog(options.data_directory)
      .record({server::operator_name(), action, "run " + run.name, details});
}

// Records in the audit log that this entry's change failed; ignores errors.
Error failed(const RunOptions& options, std::uint64_t entry, const char* action, const Error& error) {
  (void)server::AuditLog(options.data_directory).append(server::change_failed(entry, action, error.message));
  return error;
}

Result<std::string> say(const RunOptions& options, server::RunStore& store, const server::RunRecord& run) {
  if (options.format == "json") {
    FEDGE_TRY(row, row_of(store, run));
    Listing list(run_columns());
    list.add(std::move(row));
    return list.object();
  }
  return "run " + std::to_string(run.number.value()) + " is " + name_of(run.status) + "\n";
}

// Requests a change of state; a running coordinator checks for requests every second.
Result<std::string> ask(const RunOptions& options, server::RunStatus wanted, const char* action) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(run, find_run(*store, options));
  const auto now = server::calendar_now();
  FEDGE_TRY(possible, server::transition(run, wanted, options.reason, now));
  FEDGE_TRY(entry, note(options, action, possible));
  if (const auto done = store->ask(run.number, wanted, options.reason, now); !done)
    return failed(options, entry, action, done.error());
  FEDGE_TRY(asked, store->run(run.number));
  return say(options, *store, asked);
}

Result<std::string> pause_run(const RunOptions& options) {
  return ask(options, server::RunStatus::kPaused, "run.paused");
}

Result<std::string> resume_run(const RunOptions& options) {
  return ask(options, server::RunStatus::kPending, "run.resumed");
}

Result<std::string> stop_run(const RunOptions& options) {
  return ask(options, server::RunStatus::kStopped, "run.stopped");
}

// Checks the run file here, where the user can still correct it, and not only in the coordinator.
Result<std::string> submit_run(const RunOptions& options) {
  FEDGE_TRY(config, load_run(options.file, options.assignments));
  FEDGE_TRY_VOID(server::check_run(config));
  FEDGE_TRY_VOID(server::check_coordinator_data(options.data_directory));
  FEDGE_TRY(store, server::open_sqlite_store(server::run_store_path(options.data_directory)));
  const server::RunRecord submitted = server::new_run(config.name, config.canonical);
  FEDGE_TRY(entry, note(options, "run.submitted", submitted));
  const auto number = store->submit(submitted);
  if (!number) return failed(options, entry, "run.submitted", number.error());
  FEDGE_TRY(run, store->run(*number));
  return say(options, *store, run);
}

}  // namespace

struct RunCommands::Impl : CommandTable<RunOptions> {};

RunCommands::RunCommands(CLI::App& app) : impl_(std::make_unique<Impl>()) {
  RunOptions& options = impl_->options;
  auto* run = app.add_subcommand("run")->require_subcommand(1);
  auto* submit = impl_->add_anywhere(run, "submit", submit_run);
  add_run_file(*submit, options.file);
  add_assignments(*submit, options.assignments);
  auto* list = impl_->add(run, "ls", list_runs);
  auto* show = impl_->add(run, "show", show_run);
  auto* log = impl_->add(run, "log", log_run);
  auto* stats = impl_->add(run, "stats", show_statistics);
  auto* pause = impl_->add(run, "pause", pause_run);
  auto* resume = impl_->add(run, "resume", resume_run);
  auto* stop = impl_->add(run, "stop", stop_run);
  for (CLI::App* command : {pause, stop})
    command->add_option("--reason", options.reason, "Reason, shown by 'fedge run ls' and in the audit log");
  for (CLI::App* command : {submit, list, show, log, stats, pause, resume, stop}) impl_->add_format(command);
  for (CLI::App* command : {show, log, stats, pause, resume, stop})
    command->add_option("NUMBER", options.number, "The run's number, as listed by 'fedge run ls'")
        ->required();
}

RunCommands::~RunCommands() = default;

std::optional<Result<std::string>> RunCommands::run() const { return impl_->run(); }

}  // namespace fedge::apps
