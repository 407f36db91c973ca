#include "apps/commands/run_commands.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "apps/commands/listing.h"
#include "server/audit_log.h"
#include "server/report/metrics.h"
#include "server/store/sqlite_store.h"

namespace fedge::apps {
namespace {

struct Options {
  std::string data_directory;
  std::string format = "table";
  std::int64_t number = 0;
  std::string reason;

  std::string print(const Listing& list) const { return format == "json" ? list.json() : list.table(); }
};

// Looking must not make a store where there is none.
Result<std::unique_ptr<server::RunStore>> open_store(const Options& options) {
  const auto path = server::run_store_path(options.data_directory);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return Error{ErrorCode::kNotFound, "there are no runs in " + options.data_directory +
                                           ": a coordinator has never run there (" + path.string() + ")"};
  return server::open_sqlite_store(path);
}

Result<server::RunRecord> find_run(server::RunStore& store, const Options& options) {
  auto run = store.run(server::RunNumber(options.number));
  if (!run && run.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, run.error().message + "; see: fedge run ls"};
  return run;
}

Listing::Cell time_or_nothing(server::UnixSeconds time) {
  return time == 0 ? Listing::Cell() : Listing::Cell(server::calendar_text(time));
}

Listing run_listing() {
  return Listing({"run", "name", "state", "rounds", "submitted", "started", "ended", "reason"});
}

Result<std::vector<Listing::Cell>> row_of(server::RunStore& store, const server::RunRecord& run) {
  FEDGE_TRY(rounds, store.metrics(run.number));
  return std::vector<Listing::Cell>{
      std::int64_t{run.number.value()},     run.name,
      std::string(name_of(run.status)),     static_cast<std::int64_t>(rounds.size()),
      server::calendar_text(run.submitted), time_or_nothing(run.started),
      time_or_nothing(run.ended),           run.reason.empty() ? Listing::Cell() : Listing::Cell(run.reason)};
}

Result<std::string> list_runs(const Options& options) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(runs, store->runs());
  Listing list = run_listing();
  for (const server::RunRecord& run : runs) {
    FEDGE_TRY(row, row_of(*store, run));
    list.add(std::move(row));
  }
  return options.print(list);
}

Result<std::string> show_run(const Options& options) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(run, find_run(*store, options));
  FEDGE_TRY(row, row_of(*store, run));
  Listing list = run_listing();
  list.add(std::move(row));
  if (options.format == "json") return list.object();
  return list.lines() + "\n" + run.document;
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return std::isnan(share) ? "" : text;
}

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return std::isnan(value) ? "" : text;
}

// As JSON the lines of metrics.jsonl, as they are.
Result<std::string> log_run(const Options& options) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(run, find_run(*store, options));
  FEDGE_TRY(lines, store->metrics(run.number));
  if (options.format == "json") {
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }
  Listing list({"round", "accuracy", "loss", "clients", "seconds", "model"});
  for (const std::string& line : lines) {
    FEDGE_TRY(round, server::parse_metrics(line, "run " + std::to_string(options.number) + ": "));
    list.add({static_cast<std::int64_t>(round.round), percent(round.test_accuracy), figure(round.test_loss),
              std::to_string(round.clients_completed) + "/" + std::to_string(round.clients_selected),
              figure(round.wall_seconds), round.model_hash.substr(0, 12)});
  }
  return list.table();
}

// A coordinator that leads the run looks every second.
Result<std::string> stop_run(const Options& options) {
  FEDGE_TRY(store, open_store(options));
  FEDGE_TRY(run, find_run(*store, options));
  const std::string named = "run " + std::to_string(options.number);
  if (has_ended(run.status)) return invalid(named + " has ended already: it is " + name_of(run.status));
  FEDGE_TRY_VOID(server::AuditLog(options.data_directory)
                     .append({server::operator_name(),
                              "run.stopped",
                              "run " + run.name,
                              {{"run", std::to_string(options.number)}, {"reason", options.reason}}}));
  FEDGE_TRY_VOID(
      store->set_status(run.number, server::RunStatus::kStopped, options.reason, server::calendar_now()));
  return named + " is stopped; what it has come to stays\n";
}

}  // namespace

struct RunCommands::Impl {
  using Action = Result<std::string> (*)(const Options&);

  Options options;
  std::vector<std::pair<CLI::App*, Action>> commands;

  CLI::App* add(CLI::App* parent, const std::string& name, const char* what, Action action) {
    CLI::App* command = parent->add_subcommand(name, what);
    command->add_option("--data-dir", options.data_directory, "The coordinator's data directory")
        ->required()
        ->envname("FEDGE_DATA_DIR");
    commands.emplace_back(command, action);
    return command;
  }
};

RunCommands::RunCommands(CLI::App& app) : impl_(std::make_unique<Impl>()) {
  Options& options = impl_->options;
  auto* run = app.add_subcommand("run", "The runs of a coordinator")->require_subcommand(1);
  auto* list = impl_->add(run, "ls", "List them, with what they have come to", list_runs);
  auto* show = impl_->add(run, "show", "Show one, with its run file", show_run);
  auto* log = impl_->add(run, "log", "Show the rounds of one", log_run);
  auto* stop = impl_->add(run, "stop", "End one for good; its last model stays", stop_run);
  stop->add_option("--reason", options.reason, "Why, for those who look at it later");
  for (CLI::App* command : {list, show, log})
    command->add_option("--format", options.format, "table or json")
        ->capture_default_str()
        ->check(CLI::IsMember({"table", "json"}));
  for (CLI::App* command : {show, log, stop})
    command->add_option("number", options.number, "Its number, as in: fedge run ls")->required();
}

RunCommands::~RunCommands() = default;

std::optional<Result<std::string>> RunCommands::run() const {
  for (const auto& [command, action] : impl_->commands)
    if (command->parsed()) return action(impl_->options);
  return std::nullopt;
}

}  // namespace fedge::apps
