#include "apps/admin/run_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "apps/admin/cells.h"
#include "apps/admin/client_view.h"
#include "apps/admin/command_table.h"
#include "apps/admin/statistics_view.h"
#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "server/report/console.h"
#include "server/report/metrics.h"
#include "server/report/results_place.h"

namespace fedge::apps {
namespace {

struct RunOptions {
  AdminTarget target;
  std::string format = "table";
  std::string file;
  std::vector<std::string> assignments;
  std::int64_t number = 0;
  std::string reason;
  std::optional<std::string> project;
  std::string key;
  bool follow = false;
  std::optional<std::uint64_t> round;
  bool best = false;
  std::string exclude;
  std::string out;
  bool force = false;

  std::string path(const char* what = "") const { return "/runs/" + std::to_string(number) + what; }
};

const std::vector<std::string>& run_columns() {
  static const std::vector<std::string> columns = {"run",       "name",    "state", "rounds",
                                                   "submitted", "started", "ended", "reason"};
  return columns;
}

// Cuts a long reason so that the table stays readable; `fedge run show` has all of it.
void shorten(Json& run) {
  constexpr std::size_t kShown = 80;
  Json& reason = run["reason"];
  if (!reason.is_string() || reason.get<std::string>().size() <= kShown) return;
  reason = clean_text(reason.get<std::string>(), kShown) + "...";
}

Result<std::string> list_runs(const RunOptions& options, const AdminClient& client) {
  const std::string query = options.project ? "?project=" + url_escaped(*options.project) : "";
  FEDGE_TRY(runs, client.all("/runs" + query));
  if (options.format != "json")
    for (Json& run : runs) shorten(run);
  return printed(runs, run_columns(), options.format);
}

std::string where(const RunOptions& options) { return "run " + std::to_string(options.number) + ": "; }

Result<server::RoundMetrics> round_of(const RunOptions& options, const Json& json) {
  return server::parse_metrics(json_text(json), where(options));
}

// The metrics of the last round whose model was evaluated, as cells for its score.
Result<std::pair<std::string, Listing::Cell>> evaluated(const RunOptions& options, const Json& json) {
  if (json.is_null()) return std::pair<std::string, Listing::Cell>("accuracy", {});
  FEDGE_TRY(round, round_of(options, json));
  const server::ShownResults shown = server::shown_results(round);
  const std::string when = " after round " + std::to_string(round.round);
  if (shown.has_error()) return std::pair<std::string, Listing::Cell>("rmse", shown.score() + when);
  return std::pair<std::string, Listing::Cell>("accuracy", Listing::Fraction{shown.accuracy, when});
}

// As a Listing prints it: a fraction with six decimals.
Json json_of(const Listing::Cell& cell) {
  if (const auto* fraction = std::get_if<Listing::Fraction>(&cell))
    return std::round(fraction->value * 1e6) / 1e6;
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? Json() : Json(*text);
}

Result<std::string> show_run(const RunOptions& options, const AdminClient& client) {
  FEDGE_TRY(shown, client.call({"GET", options.path()}));
  FEDGE_TRY(score, evaluated(options, shown["evaluated"]));
  if (options.format == "json") {
    Json run = shown["run"];
    run[score.first] = json_of(score.second);
    return json_text(run) + "\n";
  }
  std::vector<std::string> columns = run_columns();
  columns.insert(columns.end(), {"project", "submitter"});
  std::vector<Listing::Cell> cells = cells_of(shown["run"], columns);
  columns.insert(columns.end(), {score.first, "results"});
  cells.push_back(score.second);
  cells.push_back(cell_of(shown["run"]["results"]));
  Listing list(columns);
  list.add(std::move(cells));
  return list.lines() + "\n" + shown["document"].get<std::string>();
}

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return std::isnan(value) ? "" : text;
}

// Prints the rounds of a run as they are completed, until it ends.
class RoundPrinter {
 public:
  RoundPrinter(const RunOptions& options, const AdminClient& client) : options_(options), client_(client) {}

  // Returns why the run has ended or paused.
  Result<std::string> follow() {
    while (state_.empty()) {
      const std::string query = "?names=round,run.ended,run.paused&run=" + std::to_string(options_.number);
      const auto followed = client_.follow(query, [this](const std::string&, const Json&) { return look(); });
      if (!followed && followed.error().code != ErrorCode::kUnavailable) return followed.error();
      if (followed) continue;
      // The coordinator may be restarting. Said once until it answers again.
      if (!std::exchange(lost_, true))
        std::fprintf(stderr, "%s; connecting again\n", followed.error().message.c_str());
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return options_.format == "json" ? std::string() : state_;
  }

 private:
  // Prints what is new. Returns whether the run goes on.
  Result<bool> look() {
    lost_ = false;
    FEDGE_TRY(shown, client_.call({"GET", options_.path()}));
    FEDGE_TRY_VOID(client_.each(options_.path("/rounds?after=") + std::to_string(printed_),
                                [this](const Json& line) { return print(line); }));
    std::fflush(stdout);
    const Json& run = shown["run"];
    const std::string state = run["state"].get<std::string>();
    if (state == "pending" || state == "running") return true;
    state_ = "run " + std::to_string(options_.number) + " is " + state;
    if (run["reason"].is_string()) state_ += ": " + run["reason"].get<std::string>();
    state_ += "\n";
    return false;
  }
  Result<bool> print(const Json& line) {
    FEDGE_TRY(round, round_of(options_, line));
    printed_ = round.round;
    if (options_.format == "json") {
      std::printf("%s\n", json_text(line).c_str());
      return true;
    }
    const server::ShownResults shown = server::shown_results(round);
    if (!std::exchange(titled_, true))
      std::printf("%7s  %-10s  %-10s  %-11s  %s\n", "round", shown.has_error() ? "RMSE" : "accuracy", "loss",
                  "clients", "since start");
    std::printf(
        "%7llu  %-10s  %-10s  %-11s  %s\n", static_cast<unsigned long long>(round.round),
        shown.measured() ? shown.score().c_str() : "", figure(shown.loss).c_str(),
        (std::to_string(round.clients_completed) + "/" + std::to_string(round.clients_selected)).c_str(),
        server::format_seconds(round.wall_seconds).c_str());
    return true;
  }

  const RunOptions& options_;
  const AdminClient& client_;
  std::uint64_t printed_ = 0;  // number of the last printed round
  bool titled_ = false;
  bool lost_ = false;  // the connection
  std::string state_;  // of the run that no longer goes on
};

// JSON output is the lines of metrics.jsonl.
Result<std::string> log_run(const RunOptions& options, const AdminClient& client) {
  if (options.follow) return RoundPrinter(options, client).follow();
  FEDGE_TRY(lines, client.all(options.path("/rounds")));
  if (options.format == "json") {
    std::string all;
    for (const Json& line : lines) all += json_text(line) + "\n";
    return all;
  }
  std::vector<server::RoundMetrics> rounds;
  for (const Json& line : lines) {
    FEDGE_TRY(round, round_of(options, line));
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

Result<std::string> show_progress(const RunOptions& options, const AdminClient& client) {
  FEDGE_TRY(progress, client.call({"GET", options.path("/progress")}));
  return options.format == "json" ? json_text(progress) + "\n" : progress_text(progress);
}

// JSON output is the object in the first line of metrics.jsonl.
Result<std::string> show_statistics(const RunOptions& options, const AdminClient& client) {
  FEDGE_TRY(statistics, client.call({"GET", options.path("/statistics")}));
  if (options.format == "json") return json_text(statistics) + "\n";
  std::string text;
  FEDGE_TRY_VOID(client.each(options.path("/rounds"), [&](const Json& line) -> Result<bool> {
    FEDGE_TRY(round, round_of(options, line));
    if (round.statistics) text = statistics_text(*round.statistics);
    return !round.statistics;
  }));
  return text;
}

std::string say(const RunOptions& options, const Json& run) {
  if (options.format == "json") return printed_object(run, run_columns(), options.format);
  return "run " + std::to_string(run["run"].get<std::int64_t>()) + " is " + run["state"].get<std::string>() +
         "\n";
}

// Requests a change of state; a running coordinator checks for requests every second.
Result<std::string> ask(const RunOptions& options, const AdminClient& client, const char* action) {
  Json body = Json::object();
  if (!options.reason.empty()) body["reason"] = options.reason;
  FEDGE_TRY(run, client.call({"POST", options.path(action), std::move(body)}));
  return say(options, run);
}

Result<std::string> pause_run(const RunOptions& options, const AdminClient& client) {
  return ask(options, client, "/pause");
}

Result<std::string> resume_run(const RunOptions& options, const AdminClient& client) {
  return ask(options, client, "/resume");
}

Result<std::string> stop_run(const RunOptions& options, const AdminClient& client) {
  return ask(options, client, "/stop");
}

Result<std::string> get_model(const RunOptions& options, const AdminClient& client) {
  if (options.best && options.round) return invalid("give only one of --round and --best");
  std::string query;
  const auto add = [&](const std::string& name, const std::string& value) {
    query += (query.empty() ? "?" : "&") + name + "=" + url_escaped(value);
  };
  if (options.round) add("round", std::to_string(*options.round));
  if (options.best) add("which", "best");
  if (!options.exclude.empty()) add("exclude", options.exclude);
  FEDGE_TRY_VOID(server::check_new_file(options.out, options.force));
  FEDGE_TRY(size, client.download(options.path("/model") + query, options.out));
  FEDGE_TRY(file, open_safetensors(options.out, SIZE_MAX));
  FEDGE_TRY(header, read_safetensors_header(file));
  return options.out + ": the model after round " + header.metadata["round"] + ", " +
         std::to_string(header.layout.size()) + " parameters, " + std::to_string(size) + " bytes\n";
}

Result<std::string> list_models(const RunOptions& options, const AdminClient& client) {
  FEDGE_TRY(models, client.call({"GET", options.path("/models")}));
  if (options.format == "json") return json_text(models) + "\n";
  const auto cell = [](const Json& round) { return round.is_null() ? std::string("-") : json_text(round); };
  std::string kept;
  for (const Json& round : models["rounds"]) kept += (kept.empty() ? "" : " ") + json_text(round);
  return "last  " + cell(models["last"]) + "\nbest  " + cell(models["best"]) + "\nkept  " +
         (kept.empty() ? "-" : kept) + "\n";
}

// Waits for the end of the replay, which may take as long as the training.
Result<std::string> verify_run(const RunOptions& options, const AdminClient& client) {
  Json body = Json::object();
  if (options.round) body["until"] = *options.round;
  FEDGE_TRY(verification, client.call({"POST", options.path("/verification"), std::move(body)}));
  while (verification["state"] == "running") {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    FEDGE_TRY(now, client.call({"GET", options.path("/verification")}));
    verification = std::move(now);
  }
  if (options.format == "json") return json_text(verification) + "\n";
  Listing list({"round", "recorded", "replayed", "equal"});
  for (const Json& round : verification["rounds"]) {
    const std::string recorded = text_of(round["recorded"]);
    const std::string replayed = text_of(round["replayed"]);
    list.add({round["round"].get<std::int64_t>(), recorded.substr(0, 16), replayed.substr(0, 16),
              recorded.empty()       ? "-"
              : recorded == replayed ? "yes"
                                     : "NO"});
  }
  if (verification["state"] == "equal")
    return list.table() + json_text(verification["updates"]) + " updates and " +
           std::to_string(verification["rounds"].size()) + " rounds: all equal\n";
  return Error{ErrorCode::kRefused, where(options) + text_of(verification["reason"])};
}

Result<std::string> remove_run(const RunOptions& options, const AdminClient& client) {
  FEDGE_TRY(removed, client.call({"DELETE", options.path()}));
  return options.format == "json" ? json_text(removed) + "\n"
                                  : "run " + std::to_string(options.number) + " is removed\n";
}

// A coordinator on this machine has another working directory, so relative paths are made absolute.
void make_absolute(const config::Document& document, std::vector<std::string>& assignments) {
  for (const char* key : {"data.directory", "data.tokenizer.file", "model.base"}) {
    const config::Value* value = config::find(document.root, key);
    const auto* path = value == nullptr ? nullptr : std::get_if<std::string>(&value->data);
    if (path == nullptr || path->empty() || path->front() == '/') continue;
    assignments.push_back(std::string(key) + "=" +
                          fedge::json_text(std::filesystem::absolute(*path).string()));
  }
}

// The coordinator checks the run file: it has the data, and perhaps strategies of its own.
Result<std::string> submit_run(const RunOptions& options, const AdminClient& client) {
  FEDGE_TRY(document, load_document(options.file, options.assignments));
  FEDGE_TRY(text, read_file(options.file, config::kMaxDocumentBytes));
  std::vector<std::string> assignments = options.assignments;
  if (client.is_local() && client.is_running()) make_absolute(document, assignments);
  Json body;
  body["document"] = text;
  body["file"] = options.file;
  body["assignments"] = assignments;
  if (options.project) body["project"] = *options.project;
  FEDGE_TRY(submitted, client.call({"POST", "/runs", std::move(body), options.key}));
  for (const Json& note : submitted["notes"])
    std::fprintf(stderr, "note: %s\n", note.get<std::string>().c_str());
  return say(options, submitted["run"]);
}

}  // namespace

struct RunCommands::Impl : CommandTable<RunOptions> {};

RunCommands::RunCommands(CLI::App& app) : impl_(std::make_unique<Impl>()) {
  RunOptions& options = impl_->options;
  auto* run = app.add_subcommand("run")->require_subcommand(1);
  auto* submit = impl_->add_anywhere(run, "submit", submit_run);
  add_run_file(*submit, options.file);
  add_assignments(*submit, options.assignments);
  submit
      ->add_option("--idempotency-key", options.key,
                   "Any text; a second submission with the same text and run file adds no second run")
      ->type_name("TEXT");
  auto* list = impl_->add(run, "ls", list_runs);
  auto* show = impl_->add(run, "show", show_run);
  auto* log = impl_->add(run, "log", log_run);
  log->add_flag("--follow", options.follow,
                "Print each round when it is complete, until the run ends or is paused");
  auto* progress = impl_->add(run, "progress", show_progress);
  auto* stats = impl_->add(run, "stats", show_statistics);
  auto* pause = impl_->add(run, "pause", pause_run);
  auto* resume = impl_->add(run, "resume", resume_run);
  auto* stop = impl_->add(run, "stop", stop_run);
  submit->add_option("--project", options.project, "Project of the run; default: default")
      ->type_name("PROJECT");
  list->add_option("--project", options.project, "Only runs of this project")->type_name("PROJECT");
  for (CLI::App* command : {pause, stop})
    command->add_option("--reason", options.reason, "Reason, shown by 'fedge run ls' and in the audit log");
  auto* model = impl_->add(run, "model", get_model);
  model->add_option("--round", options.round, "Round after which the model is wanted; default: the last one")
      ->type_name("NUMBER");
  model->add_flag("--best", options.best, "The model of the best round so far, in a run with run.keep_best");
  model
      ->add_option(
          "--exclude", options.exclude,
          "The model of the track that excludes these clients: their names, with commas between them")
      ->type_name("NAMES");
  model->add_option("-o,--out", options.out, "File to write; default: model.safetensors")->type_name("FILE");
  model->add_flag("-f,--force", options.force, "Overwrite the file");
  options.out = "model.safetensors";
  auto* models = impl_->add(run, "models", list_models);
  auto* remove = impl_->add(run, "rm", remove_run);
  auto* verify = impl_->add(run, "verify", verify_run);
  verify->add_option("--until", options.round, "Last round that is replayed; default: the last complete one")
      ->type_name("ROUND");
  for (CLI::App* command :
       {submit, list, show, log, progress, stats, pause, resume, stop, models, remove, verify})
    impl_->add_format(command);
  for (CLI::App* command : {show, log, progress, stats, pause, resume, stop, model, models, remove, verify})
    command->add_option("NUMBER", options.number, "The run's number, as listed by 'fedge run ls'")
        ->required();
}

RunCommands::~RunCommands() = default;

std::optional<int> RunCommands::run(const std::string& program) const { return impl_->run(program); }

}  // namespace fedge::apps
