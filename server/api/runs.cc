// Routes of runs.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "run/run_config.h"
#include "server/api/detail/call.h"
#include "server/coordinator/run_parts.h"
#include "server/data_directory.h"
#include "server/report/metrics.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostReason = 1000;
constexpr const char* kTooOld = "it ended more than retention.keep_days ago";

// Results of `fedge-coordinator --run` are in its --out, which the data directory does not know.
Json results_of(const Call& call, RunNumber run) {
  const auto directory = run_results(call.stores.parts().data_directory, run);
  std::error_code ignored;
  return std::filesystem::exists(directory, ignored) ? Json(directory.string()) : Json();
}

// The number of the pending run in the queue, from 1; null for any other run.
Result<Json> position_of(RunStore& store, const RunRecord& run) {
  if (run.status != RunStatus::kPending) return Json();
  FEDGE_TRY(open, store.open_runs());
  return Json(std::ranges::count_if(open, [&](const RunRecord& one) {
    return one.status == RunStatus::kPending && one.number <= run.number;
  }));
}

Result<Json> run_json(const Call& call, RunStore& store, const RunRecord& run) {
  FEDGE_TRY(rounds, store.rounds(run.number));
  Json json;
  json["run"] = run.number.value();
  json["id"] = text_of(run.id);
  json["name"] = run.name;
  json["project"] = run.project;
  json["state"] = name_of(run.status);
  json["rounds"] = rounds;
  json["submitted"] = calendar_text(run.submitted);
  json["submitter"] = run.submitter.empty() ? Json() : Json(run.submitter);
  json["started"] = time_or_null(run.started);
  json["ended"] = time_or_null(run.ended);
  json["reason"] = run.reason.empty() ? Json() : Json(run.reason);
  json["waiting"] = waiting_of(call, run.number);
  FEDGE_TRY(position, position_of(store, run));
  json["position"] = position;
  json["results"] = results_of(call, run.number);
  return json;
}

Result<Reply> list_runs(Call& call) {
  FEDGE_TRY(after, call.query_number("after", 0, INT64_MAX));
  FEDGE_TRY(limit, call.page_limit());
  const std::string state = call.query_text("state");
  const std::string project = call.query_text("project");
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(runs, state == "open" ? store->open_runs() : store->runs());
  Json items = Json::array();
  std::optional<std::uint64_t> last;
  for (const RunRecord& run : runs) {
    const auto number = static_cast<std::uint64_t>(run.number.value());
    const bool fits = (state.empty() || state == "open" || state == name_of(run.status)) &&
                      (project.empty() || project == run.project);
    if (number <= after || !fits || !call.sees(run.project)) continue;
    if (items.size() == limit) return page_of(std::move(items), last);
    last = number;
    FEDGE_TRY(json, run_json(call, *store, run));
    items.push_back(std::move(json));
  }
  return page_of(std::move(items), std::nullopt);
}

std::string where(const RunRecord& run) { return "run " + std::to_string(run.number.value()) + ": "; }

// The metrics of the last round whose model was evaluated; null if there is none. Looks at most at the last
// thousand rounds.
Result<Json> last_evaluation(RunStore& store, const RunRecord& run) {
  FEDGE_TRY(rounds, store.rounds(run.number));
  FEDGE_TRY(lines, store.metrics(run.number, rounds > 1000 ? rounds - 1000 : 0, 1000));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    FEDGE_TRY(round, parse_metrics(*line, where(run)));
    if (shown_results(round).measured()) return Json(parse_ordered_json(*line, kMaxJsonLevels));
  }
  return Json();
}

Result<Reply> show_run(Call& call) {
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kViewer));
  FEDGE_TRY(json, run_json(call, *store, run));
  FEDGE_TRY(evaluated, last_evaluation(*store, run));
  Json reply;
  reply["run"] = std::move(json);
  reply["document"] = run.document;
  reply["evaluated"] = std::move(evaluated);
  return Reply{200, std::move(reply)};
}

Result<Reply> list_rounds(Call& call) {
  FEDGE_TRY(after, call.query_number("after", 0, INT64_MAX));
  FEDGE_TRY(limit, call.page_limit());
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kViewer));
  FEDGE_TRY(lines, store->metrics(run.number, after, limit + 1));
  const bool more = lines.size() > limit;
  if (more) lines.pop_back();
  Json items = Json::array();
  for (const std::string& line : lines) {
    FEDGE_TRY(round, parse_metrics(line, where(run)));  // the line is whole
    (void)round;
    items.push_back(parse_ordered_json(line, kMaxJsonLevels));
  }
  return page_of(std::move(items), more ? std::optional(after + limit) : std::nullopt);
}

Result<Reply> show_statistics(Call& call) {
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kViewer));
  FEDGE_TRY(lines, store->metrics(run.number));
  for (const std::string& line : lines) {
    FEDGE_TRY(round, parse_metrics(line, where(run)));
    if (round.statistics) return Reply{200, parse_ordered_json(to_json(*round.statistics), kMaxJsonLevels)};
  }
  return Error{
      ErrorCode::kNotFound,
      where(run) +
          "there are no statistics of the clients' data; a run with data.normalise = \"federated\" has "
          "them after its first round"};
}

AuditEvent event_about(const Actor& actor, const char* action, const RunRecord& run,
                       const std::string& reason) {
  AuditDetails details = {{"run_id", text_of(run.id)}};
  // A submitted run has an id but no number yet.
  if (run.number.value() > 0) details.emplace_back("run", std::to_string(run.number.value()));
  if (run.project != kDefaultProject) details.emplace_back("project", run.project);
  if (!reason.empty()) details.emplace_back("reason", reason);
  return event_by(actor, action, "run " + run.name, std::move(details));
}

// Records the change in the audit log before it takes effect, and that it failed if it did.
Result<void> recorded(const ApiStores& stores, const Actor& actor, const AuditEvent& event,
                      const std::function<Result<void>()>& change) {
  const AuditLog audit = stores.audit();
  FEDGE_TRY(entry, audit.record(event));
  auto done = change();
  if (!done) (void)audit.append(change_failed(actor, entry, event.action, done.error().message));
  return done;
}

Result<void> remove_files(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  return error ? Result<void>(system_error("cannot remove", directory, error.value())) : Result<void>();
}

// A link is refused: only the link would be removed, and the files behind it would stay.
Result<void> check_no_link(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (!std::filesystem::is_symlink(directory, ignored)) return {};
  return Error{ErrorCode::kRefused, directory.string() + " is a symbolic link to " +
                                        std::filesystem::read_symlink(directory, ignored).string() +
                                        "; remove the link, and what it leads to, first"};
}

Result<void> remove_for_good(const ApiStores& stores, const Actor& actor, RunStore& store,
                             const RunRecord& run, const std::string& reason) {
  const auto& data = stores.parts().data_directory;
  FEDGE_TRY_VOID(check_no_link(run_results(data, run.number)));
  FEDGE_TRY_VOID(check_no_link(run_directory(data, run.number)));
  return recorded(stores, actor, event_about(actor, "run.removed", run, reason), [&]() -> Result<void> {
    FEDGE_TRY_VOID(remove_files(run_results(data, run.number)));
    FEDGE_TRY_VOID(remove_files(run_directory(data, run.number)));
    return store.remove(run.number);
  });
}

// Requests a change of state; a running coordinator checks for requests every second.
Result<Reply> ask(Call& call, RunStatus wanted, const char* action) {
  const std::string reason = call.text("reason");
  FEDGE_TRY_VOID(check_text(reason, kMostReason, "reason"));
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kSubmitter));
  const auto now = calendar_now();
  FEDGE_TRY(possible, transition(run, wanted, reason, now));
  FEDGE_TRY_VOID(recorded(call.stores, call.actor(), event_about(call.actor(), action, possible, reason),
                          [&] { return store->ask(run.number, wanted, reason, now); }));
  FEDGE_TRY(asked, store->run(run.number));
  FEDGE_TRY(json, run_json(call, *store, asked));
  return Reply{200, std::move(json)};
}

Result<Reply> pause_run(Call& call) { return ask(call, RunStatus::kPaused, "run.paused"); }
Result<Reply> resume_run(Call& call) { return ask(call, RunStatus::kPending, "run.resumed"); }
Result<Reply> stop_run(Call& call) { return ask(call, RunStatus::kStopped, "run.stopped"); }

// Files first: without them, the request can be repeated.
Result<Reply> remove_run(Call& call) {
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kOperator));
  if (!run.is_over())
    return Error{ErrorCode::kRefused, where(run) + "is " + name_of(run.status) +
                                          "; stop it first: fedge run stop " +
                                          std::to_string(run.number.value())};
  FEDGE_TRY_VOID(remove_for_good(call.stores, call.actor(), *store, run, ""));
  return Reply{200, Json{{"run", run.number.value()}}};
}

// A request that is repeated with its key, as after a lost answer, names the same run.
RunId id_of(const Call& call, const std::string& project) {
  const std::string key = project + "\n" + call.request.idempotency_key;
  const Digest digest = sha256("fedge run\n" + call.actor().name + "\n" + key);
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < sizeof id; ++i)
    id = id << 8 | std::to_integer<std::uint64_t>(std::byte{digest[i]});
  return RunId(id);
}

// Whether the path leads into one of these directories, also after its links were followed.
bool is_within(const std::filesystem::path& path, const std::vector<std::filesystem::path>& directories) {
  std::error_code unknown;
  const auto real = std::filesystem::canonical(path, unknown);
  if (unknown) return false;
  return std::ranges::any_of(directories, [&](const std::filesystem::path& directory) {
    std::error_code missing;
    const auto place = std::filesystem::canonical(directory, missing);
    return !missing &&
           std::mismatch(place.begin(), place.end(), real.begin(), real.end()).first == place.end();
  });
}

// A remote user may not read the coordinator's files, such as the models of other projects, by naming them in
// a run file.
Result<void> check_paths(const Call& call, const config::Document& document) {
  if (call.actor().address.empty()) return {};
  for (const char* key : {"data.directory", "data.tokenizer.file", "model.base"}) {
    const config::Value* value = config::find(document.root, key);
    const auto* path = value == nullptr ? nullptr : std::get_if<std::string>(&value->data);
    if (path == nullptr || path->empty() || is_within(*path, call.stores.parts().directories)) continue;
    return invalid(
        value->where + ": " + key + ": '" + clean_text(*path, 200) +
        "' is in none of the directories that the coordinator's configuration allows to remote users "
        "(api.directories)");
  }
  return {};
}

Result<run::RunConfig> read_submitted(const Call& call) {
  FEDGE_TRY(document, config::parse_toml(call.text("document"), call.text("file", "run.toml")));
  if (call.has("assignments"))
    for (const Json& assignment : call.body["assignments"])
      FEDGE_TRY_VOID(config::set(document, assignment.get<std::string>()));
  FEDGE_TRY_VOID(check_paths(call, document));
  FEDGE_TRY(config, run::read_run_config(document));
  FEDGE_TRY_VOID(check_run(config));
  return config;
}

Result<Reply> submitted(const Call& call, RunStore& store, const RunRecord& run, const Json& notes) {
  FEDGE_TRY(json, run_json(call, store, run));
  Json reply;
  reply["run"] = std::move(json);
  reply["notes"] = notes;
  return Reply{201, std::move(reply)};
}

Result<Reply> submit_run(Call& call) {
  const std::string project = call.text("project", kDefaultProject);
  FEDGE_TRY_VOID(call.require_project(Role::kSubmitter, project));
  FEDGE_TRY_VOID(check_text(call.text("file", "run.toml"), 4096, "file"));
  FEDGE_TRY(config, read_submitted(call));
  FEDGE_TRY_VOID(check_coordinator_data(call.stores.parts().data_directory));
  FEDGE_TRY(book, call.stores.access().read());
  if (std::ranges::find(book.projects, project, &ProjectRecord::name) == book.projects.end())
    return Error{ErrorCode::kNotFound,
                 "there is no project '" + clean_text(project, 80) + "'; see: fedge project ls"};
  FEDGE_TRY(store, call.stores.runs(/*create=*/true));
  RunRecord run = new_run(config.name, config.canonical);
  run.project = project;
  run.submitter = call.actor().name;
  if (!call.request.idempotency_key.empty()) {
    run.id = id_of(call, project);
    FEDGE_TRY(before, store->find(run.id));
    if (before && (before->document != run.document || before->project != project))
      return Error{ErrorCode::kStale, "another run was submitted with this idempotency key: run " +
                                          std::to_string(before->number.value())};
    if (before) return submitted(call, *store, *before, config.notes);
  }
  FEDGE_TRY_VOID(recorded(call.stores, call.actor(), event_about(call.actor(), "run.submitted", run, ""),
                          [&]() -> Result<void> {
                            FEDGE_TRY(number, store->submit(run));
                            run.number = number;
                            return {};
                          }));
  FEDGE_TRY(stored, store->run(run.number));
  return submitted(call, *store, stored, config.notes);
}

}  // namespace

Result<void> remove_old_runs(ApiStores& stores, UnixSeconds now) {
  const double days = stores.parts().keep_days;
  if (days <= 0) return {};
  FEDGE_TRY(store, stores.runs());
  FEDGE_TRY(runs, store->runs());
  const auto before = now - static_cast<UnixSeconds>(days * 86'400);
  Result<void> outcome;
  for (const RunRecord& run : runs) {
    // One that could not be removed is tried again by the next process: each attempt is in the audit log.
    if (!run.is_over() || run.ended >= before || stores.stuck().contains(run.number)) continue;
    auto removed = remove_for_good(stores, {"coordinator"}, *store, run, kTooOld);
    if (removed) continue;
    stores.stuck().insert(run.number);
    outcome = removed.error().with_prefix(where(run));
  }
  return outcome;
}

std::vector<ApiRoute> run_routes() {
  const std::vector<Parameter> pages = {
      {"after", "integer", "Only items with a higher number"},
      {"limit", "integer", "Most items in the answer, at most 1000; default: 100"}};
  std::vector<Parameter> of_runs = pages;
  of_runs.insert(of_runs.end(),
                 {{"state", "string", "Only runs in this state; open: those that have not ended"},
                  {"project", "string", "Only runs of this project"}});
  const auto change = [](const char* path, const char* operation, const char* summary, Handler handler) {
    return ApiRoute{.method = "POST",
                    .path = path,
                    .operation = operation,
                    .summary = summary,
                    .role = Role::kSubmitter,
                    .handler = handler,
                    .body = "Reason",
                    .answer = "Run"};
  };
  return {{.method = "GET",
           .path = "/runs",
           .operation = "listRuns",
           .summary = "List runs, by number",
           .role = Role::kViewer,
           .handler = list_runs,
           .answer = "Run[]",
           .query = of_runs},
          {.method = "POST",
           .path = "/runs",
           .operation = "submitRun",
           .summary = "Submit a run file",
           .role = Role::kSubmitter,
           .handler = submit_run,
           .body = "NewRun",
           .answer = "SubmittedRun",
           .success = 201},
          {.method = "GET",
           .path = "/runs/{run}",
           .operation = "showRun",
           .summary = "Show one run with its run file",
           .role = Role::kViewer,
           .handler = show_run,
           .answer = "RunDetails"},
          {.method = "GET",
           .path = "/runs/{run}/rounds",
           .operation = "listRounds",
           .summary = "List the metrics of complete rounds, by number",
           .role = Role::kViewer,
           .handler = list_rounds,
           .answer = "Round[]",
           .query = pages},
          {.method = "GET",
           .path = "/runs/{run}/statistics",
           .operation = "showStatistics",
           .summary = "Show the statistics of the clients' data by which a run normalises",
           .role = Role::kViewer,
           .handler = show_statistics,
           .answer = "Statistics"},
          {.method = "DELETE",
           .path = "/runs/{run}",
           .operation = "removeRun",
           .summary = "Remove a run that has ended, with its results, metrics and journal",
           .role = Role::kOperator,
           .handler = remove_run,
           .answer = "RemovedRun"},
          change("/runs/{run}/pause", "pauseRun", "Pause a run", pause_run),
          change("/runs/{run}/resume", "resumeRun", "Continue a paused run", resume_run),
          change("/runs/{run}/stop", "stopRun", "End a run; its last model becomes its result", stop_run)};
}

}  // namespace fedge::server
