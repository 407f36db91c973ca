#include "apps/simulation/sweep/sweep_runs.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/common.h"
#include "apps/simulation/results/finished_run.h"
#include "core/config/document.h"
#include "core/platform/files.h"
#include "run/run_config.h"
#include "server/report/results_place.h"
#include "sim/first_model.h"
#include "sim/spec.h"

namespace fedge::apps {
namespace {

constexpr std::chrono::seconds kGrace{60};  // for a run to end at a signal; killed, it continues all the same
constexpr std::size_t kMostLogBytes = std::size_t{16} << 20;

// The log is beside the results, so that their directory has only files of the run.
std::filesystem::path log_of(const PlannedRun& run) { return run.results.string() + ".log"; }

std::string last_line(const std::filesystem::path& log) {
  const auto text = read_file(log, kMostLogBytes);
  if (!text) return text.error().message;
  std::string_view lines = *text;
  while (lines.ends_with('\n')) lines.remove_suffix(1);
  const std::size_t begin = lines.rfind('\n');
  return std::string(begin == std::string_view::npos ? lines : lines.substr(begin + 1));
}

// Whether a run that no process can continue has reached its end. An interrupted one leaves results as well.
bool has_ended(const std::filesystem::path& directory, const config::Document& document) {
  const auto found = read_finished_run(directory);
  if (!found || found->rounds.empty()) return false;
  if (!found->failure.empty()) return true;
  const config::Value* rounds = config::find(document.root, "run.rounds");
  const auto* planned = rounds == nullptr ? nullptr : std::get_if<std::int64_t>(&rounds->data);
  return planned == nullptr || found->rounds.back().round >= static_cast<std::uint64_t>(*planned);
}

bool is_of(const std::filesystem::path& directory, const std::string& canonical) {
  const auto text = read_file(directory / "run.toml", config::kMaxDocumentBytes);
  return text && *text == canonical;
}

}  // namespace

Result<SweepRuns::Checked> SweepRuns::checked(const std::string& name, const Settings& settings) {
  if (options_.interrupted()) return Error{ErrorCode::kUnavailable, "interrupted"};
  const auto known = checked_.find(settings);
  if (known != checked_.end()) return known->second;
  const auto read = [&]() -> Result<sim::Experiment> {
    FEDGE_TRY(document, load_document(options_.run_file, settings));
    FEDGE_TRY(experiment, sim::read_experiment(document));
    FEDGE_TRY_VOID(use_data(options_.data, experiment.run.task.data));
    return experiment;
  };
  const auto experiment = read();
  if (!experiment) return experiment.error().with_prefix(name + ": ");
  if (sim::lacks_first_model(experiment->run))
    return invalid(
        name +
        ": the trainer program makes the first model of each run anew; name one with model.base, so "
        "that all runs of the sweep begin with it");
  Checked result{.canonical = experiment->run.canonical,
                 .continues = !sim::cannot_continue(experiment->simulation)};
  checked_.emplace(settings, result);
  return result;
}

Result<void> SweepRuns::check(const std::string& name, const Settings& settings) {
  FEDGE_TRY(ignored, checked(name, settings));
  (void)ignored;
  return {};
}

// Whether the directory has the complete results of this run. Looks only at files, and so misses results of a
// run file with keys of a former kind.
bool SweepRuns::is_done(const std::filesystem::path& results, const config::Document& document) const {
  if (!read_finished_run(results) || !is_complete(results)) return false;
  const auto canonical = run::canonical_text(document);
  const auto simulation = sim::read_simulation(document);
  return canonical && simulation && is_of(results, *canonical) &&
         (!sim::cannot_continue(*simulation) || has_ended(results, document));
}

bool SweepRuns::has_results(const PlannedRun& run) const {
  if (!is_complete(run.results) || !is_of(run.results, run.canonical)) return false;
  const auto document = config::parse_toml(run.canonical, run.results.string());
  return run.continues || (document && has_ended(run.results, *document));
}

Result<PlannedRun> SweepRuns::plan(std::string name, std::filesystem::path results, Settings settings,
                                   std::uint64_t seed) {
  const std::string seed_setting = "run.seed=" + std::to_string(seed);
  PlannedRun run{.name = std::move(name), .results = std::move(results), .settings = settings};
  run.settings.push_back(seed_setting);
  FEDGE_TRY(document, load_document(options_.run_file, run.settings));
  run.complete = is_done(run.results, document);
  if (run.complete) return run;
  FEDGE_TRY(file, checked(run.name, settings));
  FEDGE_TRY(canonical, config::parse_toml(file.canonical, options_.run_file));
  FEDGE_TRY_VOID(config::set(canonical, seed_setting));
  run.canonical = config::canonical_toml(canonical.root);
  run.continues = file.continues;
  const bool own = is_of(run.results, run.canonical);
  run.complete = has_results(run) && read_finished_run(run.results);
  // Damaged results are made again, like those of a run that cannot continue.
  const bool damaged = own && is_complete(run.results);
  run.way = own && file.continues && !damaged ? "--resume" : "--force";
  if (!own && !options_.force && server::holds_results(run.results))
    return Error{ErrorCode::kRefused, run.results.string() +
                                          " holds the results of a run with other settings; name another "
                                          "directory with --out, or overwrite them with --force"};
  return run;
}

Result<void> SweepRuns::start(const PlannedRun& run) {
  FEDGE_TRY_VOID(make_directory(run.results.parent_path()));
  std::vector<std::string> arguments = {
      options_.program.string(),
      "run",
      options_.run_file,
      "--out",
      run.results.string(),
      run.way,
      "--threads",
      std::to_string(std::max<std::size_t>(1, options_.threads / options_.jobs))};
  for (const std::string& setting : run.settings) arguments.insert(arguments.end(), {"--set", setting});
  for (const std::string& data : options_.data) arguments.insert(arguments.end(), {"--data", data});
  arguments.insert(arguments.end(), options_.further.begin(), options_.further.end());
  return processes_.start(run.name, arguments, log_of(run));
}

// A run whose model diverges ends with exit code 1 and has valid results.
Result<void> SweepRuns::take(const PlannedRun& run, const ChildProcesses::Ended& ended) const {
  if (!has_results(run))
    return Error{ErrorCode::kUnavailable, (ended.failed() ? ended.describe() : run.name + " has not ended") +
                                              ": " + last_line(log_of(run)) + " (" + log_of(run).string() +
                                              ")"};
  std::error_code ignored;
  if (!ended.failed()) std::filesystem::remove(log_of(run), ignored);
  return {};
}

Result<void> SweepRuns::execute(std::span<const PlannedRun> runs,
                                const std::function<Result<void>(std::size_t)>& on_done,
                                const std::function<void()>& on_start) {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].complete)
      waiting.push_back(i);
    else
      FEDGE_TRY_VOID(on_done(i));
  }
  std::map<std::string, std::size_t> begun;
  std::optional<Error> failure;
  for (std::size_t next = 0; next < waiting.size() || !begun.empty();) {
    while (!failure && next < waiting.size() && begun.size() < options_.jobs) {
      const std::size_t i = waiting[next++];
      FEDGE_TRY_VOID(start(runs[i]));
      begun.emplace(runs[i].name, i);
      on_start();
    }
    if (begun.empty()) break;
    const auto ended = processes_.wait(options_.interrupted);
    if (options_.interrupted()) break;
    const auto found = begun.extract(ended.name);
    if (!found) continue;
    auto taken = take(runs[found.mapped()], ended);
    if (taken) taken = on_done(found.mapped());
    if (!taken && !failure) failure = taken.error();
  }
  processes_.stop(kGrace);
  if (options_.interrupted()) return Error{ErrorCode::kUnavailable, "interrupted"};
  return failure ? Result<void>(*failure) : Result<void>();
}

}  // namespace fedge::apps
