#include "apps/sim_program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>

#include "apps/cli/command_line.h"
#include "apps/cli/validators.h"
#include "apps/client_program.h"
#include "apps/commands/pretrain.h"
#include "apps/commands/replay.h"
#include "apps/commands/strategies.h"
#include "apps/common.h"
#include "apps/coordinator_program.h"
#include "apps/simulation/comparison/compare_command.h"
#include "apps/simulation/interrupts.h"
#include "apps/simulation/run_command.h"
#include "apps/simulation/sweep/sweep_command.h"
#include "core/platform/thread_pool.h"
#include "server/report/results_place.h"
#include "server/report/run_output.h"

namespace {

constexpr const char* kProgram = "fedge-sim";

struct Options {
  std::string program;  // its name
  fedge::apps::RunCommand run;
  fedge::apps::SweepOptions sweep;
  fedge::apps::CompareOptions compare;
  std::string run_file;  // of `pretrain`, with the next three
  bool force = false;
  std::vector<std::string> assignments;
  std::vector<std::string> data;  // --data
  std::size_t threads = fedge::available_processors();
  std::string log_level = "warning";
  std::string report_directory;
  bool tensorboard = false;  // of `report`
  std::string part;          // of `strategies`
  fedge::apps::ReplayCommand replay;
  fedge::apps::PretrainCommand pretrain;
  std::string format = "table";
};

int pretrain(Options& options) {
  auto config = fedge::apps::load_run(options.run_file, options.assignments);
  if (!config) return fedge::apps::report_failure(options.program, config.error());
  if (const auto used = fedge::apps::use_data(options.data, config->task.data); !used)
    return fedge::apps::report_failure(options.program, used.error());
  if (const auto absent = fedge::server::check_new_file(options.pretrain.out, options.force); !absent)
    return fedge::apps::report_failure(options.program, absent.error());
  fedge::apps::catch_interrupts();
  options.pretrain.threads = options.threads;
  options.pretrain.interrupted = [] { return fedge::apps::interrupt_signal() != 0; };
  const auto done = fedge::apps::pretrain(*config, options.pretrain, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(options.program, done.error());
}

int report(const Options& options) {
  const auto written = fedge::server::rewrite_report(options.report_directory, options.tensorboard);
  return written ? fedge::apps::kOk : fedge::apps::report_failure(options.program, written.error());
}

int list_strategies(const Options& options) {
  const auto listed = fedge::apps::strategies(options.part);
  if (!listed) return fedge::apps::report_failure(options.program, listed.error());
  std::printf("%s", listed->c_str());
  return fedge::apps::kOk;
}

int replay(Options& options) {
  fedge::apps::set_up_logging(options.program, options.log_level);
  options.replay.threads = options.threads;
  options.replay.json = options.format == "json";
  const auto done = fedge::apps::replay(options.replay, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(options.program, done.error());
}

// Commands of fedge-lab.
bool is_study(std::string_view word) {
  return word == "overlay" || word == "attack" || word == "swarm" || word == "gossip";
}

CLI::App* add_pretrain(CLI::App& app, Options& options) {
  auto* command = app.add_subcommand("pretrain");
  fedge::apps::add_run_file(*command, options.run_file);
  command->add_option("--out", options.pretrain.out, "Output file (.safetensors)")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--force", options.force, "Overwrite the output file if it exists");
  command
      ->add_option("--labels", options.pretrain.labels,
                   "Train only on samples with these labels; default: all")
      ->type_name("LABEL,...")
      ->delimiter(',');
  fedge::apps::add_assignments(*command, options.assignments);
  fedge::apps::add_data(*command, options.data);
  fedge::apps::add_threads(*command, options.threads, "Number of threads of the evaluation");
  return command;
}

CLI::App* add_replay(CLI::App& app, Options& options) {
  auto* command = app.add_subcommand("replay");
  command->add_option("DIR", options.replay.directory, "The coordinator's data directory")->required();
  command->add_option("--run", options.replay.run, "Number of the run; default: the last run")
      ->check(fedge::apps::at_least(1));
  command
      ->add_option("--until", options.replay.until,
                   "Last round to replay; default: as far as the journal goes")
      ->type_name("ROUND")
      ->check(fedge::apps::at_least(1));
  fedge::apps::add_data(*command, options.replay.data);
  fedge::apps::add_threads(*command, options.threads, fedge::apps::kThreadsHelp);
  fedge::apps::add_format(*command, options.format);
  return command;
}

}  // namespace

int fedge::apps::sim_main(int argc, char** argv) {
  Options options{.program = program_name(argv, kProgram)};
  const bool own = options.program != kProgram;  // somebody's program with parts of their own
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (role == "coordinator" || role == "client") {
    const auto main_as = role == "client" ? client_main_as : coordinator_main_as;
    return main_as((own ? options.program + " " : "fedge-") + std::string(role), argc - 1, argv + 1);
  }
  if (argc > 1 && is_study(argv[1]))
    return report_wrong_usage(
        options.program,
        "'" + std::string(argv[1]) + "' is a command of fedge-lab; run 'fedge-lab " + argv[1] + "'",
        "commands");
  CLI::App app("", options.program);
  const std::string version = fedge::apps::software(kProgram);
  app.set_version_flag("--version", own ? options.program + " (" + version + ")" : version);
  app.require_subcommand(1);
  const auto* run_command = fedge::apps::add_run(app, options.run);
  const auto* sweep_command = fedge::apps::add_sweep(app, options.sweep);
  const auto* compare_command = fedge::apps::add_compare(app, options.compare);
  const auto* pretrain_command = add_pretrain(app, options);
  const auto* replay_command = add_replay(app, options);
  // Handled above; added for the help.
  for (const char* daemon : {"coordinator", "client"}) app.add_subcommand(daemon)->prefix_command();
  auto* report_command = app.add_subcommand("report");
  report_command->add_option("DIR", options.report_directory, "Output directory of the run")->required();
  report_command->add_flag(
      "--tensorboard", options.tensorboard,
      "Also write an event file for TensorBoard, as run.tensorboard does during the run");
  auto* strategies_command = app.add_subcommand("strategies");
  strategies_command->add_option("NAME", options.part, "Show only the strategy or part of this name");
  if (const auto code = fedge::apps::parse_command_line(app, renamed(sim_doc(), options.program), argc, argv))
    return *code;
  return fedge::apps::run_safely(options.program, [&] {
    if (*replay_command) return replay(options);
    if (*pretrain_command) return pretrain(options);
    if (*compare_command) return fedge::apps::run_compare(options.compare, options.program);
    if (*sweep_command) return fedge::apps::run_sweep(options.sweep, options.program);
    if (*strategies_command) return list_strategies(options);
    return *run_command ? fedge::apps::run_simulation(options.run, options.program) : report(options);
  });
}
