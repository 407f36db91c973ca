#include "apps/simulation/sweep/sweep_execution.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>

#include "apps/common.h"
#include "apps/simulation/interrupts.h"
#include "apps/simulation/results/column.h"
#include "apps/simulation/results/finished_run.h"
#include "apps/simulation/sweep/base_model.h"
#include "apps/simulation/sweep/cells.h"
#include "apps/simulation/sweep/progress_line.h"
#include "apps/simulation/sweep/sweep_file.h"
#include "apps/simulation/sweep/sweep_results.h"
#include "apps/simulation/sweep/sweep_runs.h"
#include "apps/simulation/sweep/sweep_tables.h"
#include "core/config/document.h"
#include "core/platform/files.h"
#include "sim/ranks/mpi_ranks.h"
#include "sim/spec.h"

namespace fedge::apps {
namespace {

constexpr const char* kOptions = "options.toml";

void append(Settings& settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
}

bool interrupted() { return interrupt_signal() != 0; }

class SweepExecution {
 public:
  explicit SweepExecution(const SweepOptions& options) : options_(options), out_(options.out) {}

  Result<void> execute();

 private:
  Result<void> read();
  Result<void> read_columns();
  Result<void> set_base();
  Result<void> plan();
  Result<void> plan_tuning();
  Result<void> plan_runs();
  Result<void> tune();
  Result<void> run();
  Result<void> choose(std::size_t cell);
  Result<void> take(std::size_t run);
  void print(const std::string& lines);
  Result<void> write_results() const;
  std::string run_options() const;
  Result<void> check_options() const;
  void print_check(bool has_model) const;
  void print_summary() const;
  std::string described() const;
  std::size_t seeds() const { return options_.seeds > 0 ? options_.seeds : sweep_.seeds.value_or(1); }
  Settings settings_of(const Cell& cell, const Settings& further) const;
  std::filesystem::path directory_of(const Cell& cell) const {
    return cell.directory.empty() ? out_ : out_ / cell.directory;
  }

  const SweepOptions& options_;
  std::filesystem::path out_;
  Sweep sweep_;
  std::uint64_t first_seed_ = 1;
  std::vector<Cell> cells_;
  std::vector<Cell> combinations_;   // of the tuned settings
  std::vector<std::size_t> chosen_;  // of them, by cell
  std::vector<PlannedRun> tuning_;   // cell by cell, combination by combination
  std::vector<PlannedRun> runs_;     // cell by cell, seed by seed
  std::unique_ptr<SweepRuns> processes_;
  std::optional<SweepResults> results_;
  std::optional<SweepTables> tables_;
  std::vector<std::vector<CellResults::Run>> found_;  // by cell; grows as the runs end
  std::vector<std::size_t> missing_;                  // runs by cell
  std::size_t failed_ = 0;
  ProgressLine progress_;
};

Settings SweepExecution::settings_of(const Cell& cell, const Settings& further) const {
  Settings settings = sweep_.settings;
  append(settings, cell.settings);
  append(settings, further);
  append(settings, options_.assignments);
  return settings;
}

// The columns that fit the task, unless they are named.
Result<void> SweepExecution::read_columns() {
  std::vector<std::string> texts = options_.columns.empty() ? sweep_.columns : options_.columns;
  if (texts.empty()) {
    FEDGE_TRY(document, load_document(sweep_.run_file, settings_of(cells_.front(), {})));
    auto experiment = sim::read_experiment(document);
    if (!experiment)
      return cells_.front().name.empty() ? experiment.error()
                                         : experiment.error().with_prefix(cells_.front().name + ": ");
    const learn::DataSpec& data = experiment->run.task.data;
    if (learn::is_text(data))
      texts = {"bits_per_byte", "min:bits_per_byte"};
    else if (learn::task_of(data) == learn::TargetKind::kValues)
      texts = {"rmse", "min:rmse"};
    else
      texts = {"final", "best"};
    texts.insert(texts.end(), {"upload", "download", "seconds"});
  }
  std::vector<Column> columns;
  for (const std::string& text : texts) {
    FEDGE_TRY(column, parse_column(text));
    columns.push_back(std::move(column));
  }
  std::vector<std::size_t> paired;
  for (const std::string& text : sweep_.paired) {
    const auto column = std::ranges::find(columns, text, &Column::text);
    if (column == columns.end()) return invalid("paired: '" + text + "' is not among the columns");
    paired.push_back(static_cast<std::size_t>(column - columns.begin()));
  }
  if (paired.empty()) {
    paired.resize(columns.size());
    std::iota(paired.begin(), paired.end(), std::size_t{0});
  }
  FEDGE_TRY(results, SweepResults::create(sweep_, cells_, std::move(columns)));
  results_.emplace(std::move(results));
  std::string tuned;
  if (sweep_.tuning)
    for (const Axis& axis : sweep_.tuning->axes) tuned += (tuned.empty() ? "" : ", ") + axis.name;
  FEDGE_TRY(tables, SweepTables::create(*results_, std::move(paired), tuned, seeds()));
  tables_.emplace(std::move(tables));
  return {};
}

Result<void> SweepExecution::read() {
  FEDGE_TRY(sweep, read_sweep(options_.file));
  sweep_ = std::move(sweep);
  for (const std::string& grid : options_.grids) {
    FEDGE_TRY(axis, parse_grid(grid));
    if (const auto added = add_axis(sweep_, std::move(axis)); !added)
      return added.error().with_prefix("--grid " + grid + ": ");
  }
  if (!options_.baseline.empty()) sweep_.baseline = options_.baseline;
  FEDGE_TRY_VOID(check_settings(sweep_, options_.assignments));
  FEDGE_TRY(cells, cells_of(sweep_.axes));
  cells_ = std::move(cells);
  Settings settings = sweep_.settings;
  append(settings, options_.assignments);
  FEDGE_TRY(document, load_document(sweep_.run_file, settings));
  if (const auto* seed = config::find(document.root, "run.seed"))
    if (const auto* number = std::get_if<std::int64_t>(&seed->data))
      first_seed_ = static_cast<std::uint64_t>(*number);
  if (sweep_.tuning) {
    FEDGE_TRY(combinations, cells_of(sweep_.tuning->axes));
    combinations_ = std::move(combinations);
  }
  return {};
}

Result<void> SweepExecution::plan_tuning() {
  if (!sweep_.tuning) return {};
  for (const Cell& cell : cells_)
    for (const Cell& combination : combinations_) {
      Settings further = {"data.validation=0.1"};
      append(further, sweep_.tuning->settings);
      append(further, combination.settings);
      FEDGE_TRY(run, processes_->plan(cell.name + " (tuning: " + combination.name + ")",
                                      out_ / "tuning" / cell.directory / combination.directory,
                                      settings_of(cell, further), first_seed_));
      tuning_.push_back(std::move(run));
    }
  return {};
}

Result<void> SweepExecution::plan_runs() {
  runs_.clear();
  for (std::size_t c = 0; c < cells_.size(); ++c)
    for (std::size_t i = 0; i < seeds(); ++i) {
      const std::uint64_t seed = first_seed_ + i;
      const Settings tuned = sweep_.tuning ? combinations_[chosen_[c]].settings : Settings();
      const std::string name = cells_[c].name + (cells_[c].name.empty() ? "seed " : ", seed ");
      FEDGE_TRY(run,
                processes_->plan(name + std::to_string(seed), directory_of(cells_[c]) / std::to_string(seed),
                                 settings_of(cells_[c], tuned), seed));
      runs_.push_back(std::move(run));
    }
  return {};
}

void SweepExecution::print(const std::string& lines) {
  if (lines.empty()) return;
  progress_.clear();
  std::printf("%s", lines.c_str());
  std::fflush(stdout);
}

// Takes the combination whose tuning run is best. One that failed is never chosen.
Result<void> SweepExecution::choose(std::size_t cell) {
  FEDGE_TRY(column, parse_column(sweep_.tuning->by));
  const double sign = column.higher_is_better ? 1 : -1;
  double best = -HUGE_VAL;
  for (std::size_t i = 0; i < combinations_.size(); ++i) {
    FEDGE_TRY(run, read_finished_run(tuning_[cell * combinations_.size() + i].results));
    const double value = sign * column.value(run);
    if (std::isnan(value) || value <= best) continue;
    best = value;
    chosen_[cell] = i;
  }
  if (std::isfinite(best)) return {};
  return Error{ErrorCode::kUnavailable, cells_[cell].name + ": no tuning run has a result (tune.by = \"" +
                                            sweep_.tuning->by + "\"); see " + (out_ / "tuning").string()};
}

Result<void> SweepExecution::tune() {
  chosen_.assign(cells_.size(), 0);
  if (!sweep_.tuning) return {};
  progress_.begin("tuning runs", tuning_.size());
  FEDGE_TRY_VOID(processes_->execute(
      tuning_,
      [&](std::size_t i) {
        progress_.done(!tuning_[i].complete, processes_->running());
        return Result<void>();
      },
      [&] { progress_.draw(processes_->running()); }));
  progress_.clear();
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) FEDGE_TRY_VOID(choose(cell));
  return {};
}

Result<void> SweepExecution::take(std::size_t index) {
  const std::size_t cell = index / seeds();
  FEDGE_TRY(found, read_finished_run(runs_[index].results));
  CellResults::Run& run = found_[cell][index % seeds()];
  run = {.seed = found.seed, .directory = found.directory.string(), .failed = !found.failure.empty()};
  for (const Column& column : results_->columns()) run.values.push_back(column.value(found));
  if (run.failed) ++failed_;
  if (--missing_[cell] == 0)
    results_->add(cell, {found_[cell], sweep_.tuning ? combinations_[chosen_[cell]].name : std::string()});
  progress_.done(!runs_[index].complete, processes_->running());
  print(tables_->take_lines());
  return {};
}

Result<void> SweepExecution::run() {
  found_.assign(cells_.size(), std::vector<CellResults::Run>(seeds()));
  missing_.assign(cells_.size(), seeds());
  progress_.begin("runs", runs_.size());
  print(tables_->take_lines());
  const auto done = processes_->execute(
      runs_, [&](std::size_t i) { return take(i); }, [&] { progress_.draw(processes_->running()); });
  progress_.clear();
  return done;
}

// The sweep as executed, for `fedge-sim compare`.
std::string SweepExecution::described() const {
  const auto text = [](const std::string& value) { return config::Value{value, ""}; };
  config::Array axes;
  for (const Axis& axis : sweep_.axes) axes.push_back(text(axis.name));
  config::Array cells;
  for (std::size_t c = 0; c < cells_.size(); ++c) {
    config::Array runs;
    for (std::size_t i = 0; i < seeds(); ++i)
      runs.push_back(text(runs_[c * seeds() + i].results.lexically_relative(out_).string()));
    config::Array choices;
    for (std::size_t a = 0; a < sweep_.axes.size(); ++a)
      choices.push_back(text(sweep_.axes[a].choices[cells_[c].choices[a]].name));
    cells.push_back({config::Table{{"choices", {choices, ""}}, {"runs", {runs, ""}}}, ""});
  }
  return config::canonical_toml({{"axes", {axes, ""}}, {"cells", {cells, ""}}});
}

Result<void> SweepExecution::write_results() const {
  FEDGE_TRY_VOID(write_file_atomic(out_ / "tables.md", tables_->markdown()));
  FEDGE_TRY_VOID(write_file_atomic(out_ / "runs.csv", results_->runs_csv()));
  FEDGE_TRY_VOID(write_file_atomic(out_ / "summary.csv", results_->summary_csv()));
  FEDGE_TRY_VOID(write_file_atomic(out_ / "differences.csv", results_->differences_csv()));
  return write_file_atomic(out_ / "cells.toml", described());
}

// Sets the base model of all runs, which is pretrained if the directory does not have it.
Result<void> SweepExecution::set_base() {
  if (!sweep_.pretraining) return {};
  FEDGE_TRY(base, pretrain_base(*sweep_.pretraining, {.program = own_program(),
                                                      .directory = out_,
                                                      .data = options_.data,
                                                      .threads = options_.threads,
                                                      .force = options_.force,
                                                      .interrupted = interrupted}));
  sweep_.settings.push_back("model.base=\"" + base.string() + "\"");
  return {};
}

// Plans the runs, and so finds the errors of all of them before one begins.
Result<void> SweepExecution::plan() {
  FEDGE_TRY_VOID(plan_tuning());
  chosen_.assign(cells_.size(), 0);
  if (!sweep_.tuning) return plan_runs();
  for (const Cell& cell : cells_)
    FEDGE_TRY_VOID(processes_->check(cell.name, settings_of(cell, combinations_.front().settings)));
  return {};
}

// The options after --, which the results depend on and their run files do not name.
std::string SweepExecution::run_options() const {
  config::Array options;
  for (const std::string& option : options_.further) options.push_back({option, ""});
  return config::canonical_toml({{"run_options", {options, ""}}});
}

// kRefused: the runs in the directory had other options. --force does not help, because it keeps complete
// runs.
Result<void> SweepExecution::check_options() const {
  const auto found = read_file(out_ / kOptions, config::kMaxDocumentBytes);
  if (!found || *found == run_options()) return {};
  return Error{ErrorCode::kRefused, out_.string() +
                                        " has runs with other options after --, on which results may depend; "
                                        "name another directory with --out"};
}

void SweepExecution::print_check(bool has_model) const {
  const std::string file = options_.file;
  if (!has_model) {
    std::printf("%s is valid; its runs can be checked once their base model is in %s\n", file.c_str(),
                out_.c_str());
    return;
  }
  std::printf("%s: the sweep is valid: %zu runs", file.c_str(), cells_.size() * seeds());
  if (sweep_.tuning) std::printf(" after %zu tuning runs", tuning_.size());
  std::printf("\n");
}

void SweepExecution::print_summary() const {
  std::printf("\n");
  if (seeds() > 1) std::printf("± is the standard deviation over %zu seeds\n", seeds());
  if (failed_ > 0)
    std::printf("failed    %zu of %zu runs; their report.html says why\n", failed_, runs_.size());
  std::printf("tables    %s\nruns      %s\n", (out_ / "tables.md").c_str(), (out_ / "runs.csv").c_str());
  std::printf("summary   %s\n", (out_ / "summary.csv").c_str());
  if (results_->baseline()) std::printf("paired    %s\n", (out_ / "differences.csv").c_str());
}

Result<void> SweepExecution::execute() {
  if (sim::launch().by_launcher)
    return Error{ErrorCode::kUnsupported, "sweep starts its own processes; start it without mpirun or srun"};
  FEDGE_TRY_VOID(read());
  FEDGE_TRY_VOID(make_directory(out_));
  FEDGE_TRY(lock, DirectoryLock::acquire(out_));
  catch_interrupts();
  FEDGE_TRY_VOID(check_options());
  processes_ = std::make_unique<SweepRuns>(SweepRunOptions{.program = own_program(),
                                                           .run_file = sweep_.run_file,
                                                           .data = options_.data,
                                                           .further = options_.further,
                                                           .threads = options_.threads,
                                                           .jobs = options_.jobs,
                                                           .force = options_.force,
                                                           .interrupted = interrupted});
  // Without a base model, only what does not need it can be checked.
  FEDGE_TRY(has_model, sweep_.pretraining ? has_base(*sweep_.pretraining, out_) : Result<bool>(true));
  const bool early = !sweep_.columns.empty() || !options_.columns.empty();
  if (early) FEDGE_TRY_VOID(read_columns());
  if (has_model || !options_.check) {
    FEDGE_TRY_VOID(set_base());
    if (!early) FEDGE_TRY_VOID(read_columns());
    FEDGE_TRY_VOID(plan());
  }
  if (options_.check) {
    print_check(has_model);
    return {};
  }
  FEDGE_TRY_VOID(write_file_atomic(out_ / kOptions, run_options()));
  FEDGE_TRY_VOID(tune());
  if (sweep_.tuning) FEDGE_TRY_VOID(plan_runs());
  FEDGE_TRY_VOID(run());
  FEDGE_TRY_VOID(write_results());
  print_summary();
  return {};
}

}  // namespace

Result<void> execute_sweep(const SweepOptions& options) { return SweepExecution(options).execute(); }

}  // namespace fedge::apps
