#include "apps/simulation/sweep/sweep_command.h"

#include "apps/cli/validators.h"
#include "apps/common.h"
#include "apps/simulation/interrupts.h"
#include "apps/simulation/run_command.h"
#include "apps/simulation/sweep/sweep_file.h"

namespace fedge::apps {

CLI::App* add_sweep(CLI::App& app, SweepOptions& options) {
  auto* command = app.add_subcommand("sweep");
  command->add_option("FILE", options.file, "Run file or sweep file (docs/guide/sweeps.md)")->required();
  command
      ->add_option("--grid", options.grids,
                   "Values of a key of the run file; with several of these options, every combination is run")
      ->type_name("KEY=VALUE,...")
      ->check(assignment())
      ->take_all();
  command
      ->add_option(
          "--seeds", options.seeds,
          "Runs of each combination, with run.seed and the numbers after it; default: `seeds` of the "
          "sweep file, or 1")
      ->type_name("N")
      ->check(between(1, kMostSeeds));
  command->add_option("--jobs", options.jobs, "Number of runs at a time, which share the threads")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 1024));
  command
      ->add_option(
          "--out", options.out,
          "Directory for the results. Runs whose results are in it are skipped, interrupted ones are "
          "continued")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_flag("--force", options.force, "Overwrite results in --out of runs with other settings");
  command->add_flag("--check", options.check, "Check all runs without starting one, and exit");
  command
      ->add_option("--columns", options.columns,
                   "Columns of the tables, such as final,upload,rounds_to:0.75; default: those of the sweep "
                   "file, or what the task suggests")
      ->type_name("COLUMN,...")
      ->delimiter(',');
  command
      ->add_option("--baseline", options.baseline,
                   "The choice to which the others are compared, seed by seed")
      ->type_name("CHOICE");
  add_assignments(*command, options.assignments);
  add_data(*command, options.data);
  add_threads(*command, options.threads, kAllThreadsHelp);
  command->add_option("RUN_OPTION", options.further, "After --: further options of fedge-sim run");
  return command;
}

int run_sweep(const SweepOptions& options, const std::string& program) {
  const auto done = execute_sweep(options);
  if (interrupt_signal() != 0) {
    report_failure(program, {ErrorCode::kUnavailable,
                             "interrupted; the same command continues the sweep in " + options.out});
    return 128 + interrupt_signal();
  }
  return done ? kOk : report_failure(program, done.error());
}

}  // namespace fedge::apps
