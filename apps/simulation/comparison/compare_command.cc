#include "apps/simulation/comparison/compare_command.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "apps/common.h"
#include "apps/simulation/comparison/figures.h"
#include "apps/simulation/comparison/groups.h"
#include "apps/simulation/comparison/page.h"
#include "apps/simulation/sweep/sweep_results.h"
#include "client/trainers/process.h"
#include "core/platform/files.h"
#include "core/platform/processes.h"

namespace fedge::apps {
namespace {

constexpr const char* kConverter = "rsvg-convert";

// The groups as the cells of a sweep along one axis.
Result<SweepResults> results_of(const CompareOptions& options, const std::vector<RunGroup>& groups) {
  Sweep sweep;
  if (!options.baseline.empty()) sweep.baseline = options.baseline;
  Axis axis{.name = "group"};
  std::vector<Cell> cells;
  for (const RunGroup& group : groups) {
    cells.push_back({.choices = {axis.choices.size()}, .name = group.name});
    axis.choices.push_back({group.name});
  }
  sweep.axes.push_back(std::move(axis));
  std::vector<Column> columns;
  for (const std::string& text : options.columns) {
    FEDGE_TRY(column, parse_column(text));
    columns.push_back(std::move(column));
  }
  FEDGE_TRY(results, SweepResults::create(sweep, std::move(cells), std::move(columns)));
  for (std::size_t cell = 0; cell < groups.size(); ++cell) {
    CellResults found;
    for (const FinishedRun& run : groups[cell].runs) {
      found.runs.push_back(
          {.seed = run.seed, .directory = run.directory.string(), .failed = !run.failure.empty()});
      for (const Column& column : results.columns()) found.runs.back().values.push_back(column.value(run));
    }
    results.add(cell, std::move(found));
  }
  return results;
}

// Writes each figure as SVG and, if the converter is installed, as PDF. Returns whether it is.
Result<bool> write_figures(const std::filesystem::path& directory,
                           const std::vector<ComparisonFigure>& figures) {
  FEDGE_TRY_VOID(make_directory(directory));
  // Figures of an earlier comparison, which this one may not have.
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (const auto kind = entry.path().extension(); kind == ".svg" || kind == ".pdf")
      std::filesystem::remove(entry.path(), ignored);
  const bool converts = client::check_program(kConverter).has_value();
  ChildProcesses processes;
  for (const ComparisonFigure& figure : figures) {
    const auto svg = directory / (figure.file + ".svg");
    FEDGE_TRY_VOID(
        write_file_atomic(svg, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + figure.svg + "\n"));
    if (!converts) continue;
    const auto pdf = directory / (figure.file + ".pdf");
    FEDGE_TRY_VOID(processes.start(
        kConverter, {"/usr/bin/env", kConverter, "--format=pdf", "--output=" + pdf.string(), svg.string()}));
    if (const auto ended = processes.wait({}); ended.failed())
      return Error{ErrorCode::kUnavailable, ended.describe() + " for " + svg.string()};
  }
  return converts;
}

Result<void> compare(const CompareOptions& options) {
  FEDGE_TRY(groups, read_groups(options.directories));
  FEDGE_TRY(results, results_of(options, groups));
  const std::vector<ComparisonFigure> figures = comparison_figures(groups);
  const std::filesystem::path out = options.out;
  std::error_code ignored;
  for (const char* const mark : {"cells.toml", "run.toml"})
    if (std::filesystem::exists(out / mark, ignored))
      return Error{ErrorCode::kRefused, "--out " + out.string() + " has the results of a " +
                                            (mark[0] == 'c' ? "sweep" : "run") + "; name another directory"};
  for (const RunGroup& group : groups)
    for (const FinishedRun& run : group.runs)
      if (!run.complete)
        std::fprintf(stderr, "note: %s has not ended; its values are those of its first %zu rounds\n",
                     run.directory.c_str(), run.rounds.size());
  FEDGE_TRY_VOID(make_directory(out));
  FEDGE_TRY_VOID(
      write_file_atomic(out / "compare.html", comparison_page(options.title, results, groups, figures)));
  FEDGE_TRY_VOID(write_file_atomic(out / "summary.csv", results.summary_csv()));
  FEDGE_TRY_VOID(write_file_atomic(out / "differences.csv", results.differences_csv()));
  FEDGE_TRY_VOID(write_file_atomic(out / "curves.csv", curves_csv(groups)));
  FEDGE_TRY_VOID(write_file_atomic(out / "table.tex", latex_table(results)));
  FEDGE_TRY(converted, write_figures(out / "figures", figures));
  std::printf("page      %s\nfigures   %s\ntables    %s, %s\n", (out / "compare.html").c_str(),
              (out / "figures").c_str(), (out / "summary.csv").c_str(), (out / "table.tex").c_str());
  if (!converted)
    std::fprintf(stderr,
                 "note: the figures are SVG only; PDF needs rsvg-convert (Debian package librsvg2-bin)\n");
  return {};
}

}  // namespace

CLI::App* add_compare(CLI::App& app, CompareOptions& options) {
  auto* command = app.add_subcommand("compare");
  command
      ->add_option(
          "DIR", options.directories,
          "Results of a run, of a sweep, or a directory with several; runs that differ only in their "
          "seed are one group")
      ->required();
  command
      ->add_option("--out", options.out,
                   "Directory for the page, figures and tables; its files of an earlier comparison are "
                   "replaced")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--title", options.title, "Title of the page")
      ->type_name("TEXT")
      ->capture_default_str();
  command
      ->add_option("--columns", options.columns, "Columns of the tables, such as final,upload,rounds_to:0.75")
      ->type_name("COLUMN,...")
      ->delimiter(',')
      ->default_str("final,best,upload,download,seconds");
  command
      ->add_option("--baseline", options.baseline, "The group to which the others are compared, seed by seed")
      ->type_name("GROUP");
  return command;
}

int run_compare(const CompareOptions& options, const std::string& program) {
  const auto done = compare(options);
  return done ? kOk : report_failure(program, done.error());
}

}  // namespace fedge::apps
