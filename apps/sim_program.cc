#include "apps/sim_program.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>

#include "apps/cli/command_line.h"
#include "apps/cli/trainer_options.h"
#include "apps/cli/validators.h"
#include "apps/client_program.h"
#include "apps/commands/pretrain.h"
#include "apps/commands/replay.h"
#include "apps/commands/strategies.h"
#include "apps/common.h"
#include "apps/coordinator_program.h"
#include "apps/simulation_runs.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "learn/models/external.h"
#include "server/report/results_place.h"
#include "server/report/run_output.h"
#include "sim/concrete.h"
#include "sim/first_model.h"

namespace {

constexpr const char* kProgram = "fedge-sim";

volatile sig_atomic_t interrupt_signal = 0;

struct Options {
  std::string program;  // its name
  std::string run_file;
  std::optional<std::string> out;
  bool force = false;
  bool resume = false;
  double checkpoint_every = 10;                      // seconds
  std::filesystem::path results;                     // directory of the results
  std::optional<fedge::server::ResultsClaim> claim;  // of them
  std::string mode = "abstract";
  bool check = false;
  std::vector<std::string> assignments;
  std::vector<std::string> data;  // --data
  std::size_t threads = fedge::available_processors();
  fedge::apps::TrainerArguments trainer;
  std::size_t workers = 1;  // trainer programs
  std::string log_level = "warning";
  std::string report_directory;
  bool tensorboard = false;  // of `report`
  std::string part;          // of `strategies`
  fedge::apps::ReplayCommand replay;
  fedge::apps::PretrainCommand pretrain;
  std::string format = "table";
};

// Sets no SA_RESTART, so that a signal also interrupts waiting for a program to listen.
void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int number) { interrupt_signal = number; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

// Chooses and claims options.results, if that has not been done.
fedge::Result<void> claim_results(Options& options, const fedge::run::RunConfig& config) {
  if (options.claim) return {};
  FEDGE_TRY(claim, fedge::server::choose_results(
                       {.out = options.out,
                        .force = options.force,
                        .going_on = options.resume ? std::optional(config.canonical) : std::nullopt}));
  options.results = claim.directory();
  options.claim = std::move(claim);
  return {};
}

// The trainer program that was given; nothing for the built-in trainer.
fedge::Result<std::optional<fedge::client::TrainerOptions>> trainer_program(const Options& options) {
  FEDGE_TRY(trainer, fedge::apps::trainer_of(options.trainer));
  if (trainer) trainer->on_event = fedge::apps::log_event;
  return trainer;
}

// Reads the run file again, with the first model of the trainer program.
fedge::Result<fedge::sim::Experiment> read_with_first_model(Options& options,
                                                            const fedge::config::Document& run_file,
                                                            const fedge::run::RunConfig& config) {
  FEDGE_TRY(trainer, trainer_program(options));
  FEDGE_TRY_VOID(claim_results(options, config));
  FEDGE_TRY(completed,
            fedge::sim::add_first_model(run_file, config, *trainer, options.results / "first.safetensors"));
  return fedge::sim::read_experiment(completed);
}

fedge::Result<void> run_abstract(Options& options, const fedge::sim::SimulationSpec& spec,
                                 const fedge::run::RunConfig& config) {
  FEDGE_TRY(trainer, trainer_program(options));
  return fedge::apps::run_abstract(
      {.trainer = std::move(trainer),
       .workers = options.workers,
       .threads = options.threads,
       .resume = options.resume,
       .checkpoint_every = std::chrono::duration<double>(options.checkpoint_every),
       .claim = [&]() -> fedge::Result<std::filesystem::path> {
         FEDGE_TRY_VOID(claim_results(options, config));
         return options.results;
       },
       .interrupted = [] { return interrupt_signal != 0; }},
      spec, config);
}

std::filesystem::path own_file() { return std::filesystem::read_symlink("/proc/self/exe"); }

bool in_directory(const fedge::sim::SimulationSpec& simulation) {
  return simulation.directory.kind != fedge::sim::DirectorySpec::Kind::kNone;
}

fedge::Result<void> run_concrete(Options& options, const fedge::sim::SimulationSpec& simulation,
                                 const fedge::run::RunConfig& config) {
  FEDGE_TRY_VOID(claim_results(options, config));
  return fedge::apps::run_concrete({.program = own_file(),
                                    .run_file = options.run_file,
                                    .assignments = options.assignments,
                                    .results = options.results,
                                    .in_directory = in_directory(simulation),
                                    .threads = options.threads,
                                    .log_level = options.log_level,
                                    .interrupted = [] { return interrupt_signal != 0; }},
                                   simulation, config);
}

// Why a process cannot continue what this one begins; nothing if it can.
std::optional<std::string> cannot_continue(const Options& options, const fedge::sim::Experiment& experiment) {
  if (options.mode == "concrete") return "its clients are processes";
  return fedge::sim::cannot_continue(experiment.simulation);
}

// Says how far the run got. The results of its rounds are in the files; of a concrete run the report is
// missing.
int report_interrupt(const Options& options, const fedge::sim::Experiment& experiment) {
  const std::uint64_t rounds = experiment.run.rounds;
  std::fflush(stdout);
  const auto metrics = fedge::server::read_metrics(options.results / "metrics.jsonl");
  const std::uint64_t done = metrics && !metrics->empty() ? metrics->back().round : 0;
  if (done > 0 && options.mode == "concrete") (void)fedge::server::rewrite_report(options.results);
  const auto obstacle = cannot_continue(options, experiment);
  const std::string results = options.results.string();
  if (done < rounds)
    fedge::apps::report_failure(
        options.program,
        {fedge::ErrorCode::kUnavailable,
         "interrupted after " + std::to_string(done) + " of " + std::to_string(rounds) + " rounds; " +
             (obstacle ? "the run cannot be continued (" + *obstacle +
                             "), so start it again; --force overwrites " + results
                       : "continue it with --out " + results + " --resume")});
  return 128 + interrupt_signal;
}

int run_experiment(Options& options) {
  fedge::apps::set_up_logging(options.program, options.log_level);
  const auto document = fedge::apps::load_document(options.run_file, options.assignments);
  if (!document) return fedge::apps::report_failure(options.program, document.error());
  const bool concrete = options.mode == "concrete";
  if (concrete && !options.trainer.command.empty())
    return fedge::apps::report_wrong_usage(options.program,
                                           "--trainer trains for all clients of a simulation; with --mode "
                                           "concrete each client is a process of its "
                                           "own, so start fedge-client run --trainer for each instead");
  auto experiment = fedge::sim::read_experiment(*document, concrete);
  if (!experiment) return fedge::apps::report_failure(options.program, experiment.error());
  if (concrete && fedge::learn::is_external(experiment->run.task.model))
    return fedge::apps::report_failure(
        options.program,
        fedge::config::at_key(*document,
                              fedge::invalid("model.kind: the processes of --mode concrete have no trainer "
                                             "program for an external model; simulate it with --trainer")));
  auto& [config, simulation] = *experiment;
  if (const auto used = fedge::apps::use_data(options.data, config.task.data); !used)
    return fedge::apps::report_failure(options.program, used.error());
  if (!options.check && !options.trainer.command.empty() && fedge::sim::lacks_first_model(config)) {
    auto again = read_with_first_model(options, *document, config);
    if (!again) return fedge::apps::report_failure(options.program, again.error());
    const std::string directory = config.task.data.directory;
    experiment = std::move(again);
    config.task.data.directory = directory;
  }
  if (const auto obstacle = cannot_continue(options, *experiment); options.resume && obstacle)
    return fedge::apps::report_failure(
        options.program, {fedge::ErrorCode::kUnsupported, "--resume: this run cannot be continued: " +
                                                              *obstacle + "; run it without --resume"});
  fedge::apps::print_notes(config);
  if (options.check) {
    std::printf("%s: the run file is valid\n", options.run_file.c_str());
    return fedge::apps::kOk;
  }
  const auto ready = concrete && in_directory(simulation) ? fedge::sim::check_directory_program(own_file())
                                                          : fedge::Result<void>();
  if (!ready) return fedge::apps::report_failure(options.program, ready.error());
  catch_interrupts();
  const auto done =
      concrete ? run_concrete(options, simulation, config) : run_abstract(options, simulation, config);
  if (interrupt_signal != 0) return report_interrupt(options, *experiment);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(options.program, done.error());
}

int pretrain(Options& options) {
  auto config = fedge::apps::load_run(options.run_file, options.assignments);
  if (!config) return fedge::apps::report_failure(options.program, config.error());
  if (const auto used = fedge::apps::use_data(options.data, config->task.data); !used)
    return fedge::apps::report_failure(options.program, used.error());
  if (const auto absent = fedge::server::check_new_file(options.pretrain.out, options.force); !absent)
    return fedge::apps::report_failure(options.program, absent.error());
  catch_interrupts();
  options.pretrain.threads = options.threads;
  options.pretrain.interrupted = [] { return interrupt_signal != 0; };
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

constexpr const char* kThreadsHelp = "Number of threads; does not affect the result";

CLI::App* add_run(CLI::App& app, Options& options) {
  auto* command = app.add_subcommand("run");
  fedge::apps::add_run_file(*command, options.run_file);
  command->add_flag("--check", options.check, "Check the run file and the --set values, and exit");
  command
      ->add_option(
          "--out", options.out,
          "Directory for metrics, model and report; default: fedge-out, or the first of fedge-out-2, "
          "fedge-out-3, ... without results")
      ->type_name("DIR");
  auto* force = command->add_flag("--force", options.force, "Overwrite the results that are in --out");
  command
      ->add_flag("--resume", options.resume,
                 "Continue an interrupted run of the same run file from its last checkpoint, with the same "
                 "results as if it had not been interrupted; begin it if --out has no results")
      ->excludes(force);
  command
      ->add_option("--checkpoint-every", options.checkpoint_every,
                   "Least time between two checkpoints, in seconds; 0: one after each round")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(fedge::apps::between(0, 86400));
  command
      ->add_option("--mode", options.mode,
                   "abstract: virtual time in one process; concrete: real processes on loopback")
      ->type_name("MODE")
      ->capture_default_str()
      ->check(fedge::apps::one_of({"abstract", "concrete"}));
  fedge::apps::add_assignments(*command, options.assignments);
  fedge::apps::add_data(*command, options.data);
  fedge::apps::add_trainer_options(*command, options.trainer);
  command
      ->add_option("--workers", options.workers,
                   "Number of processes of the trainer that train at the same time, each for any client")
      ->capture_default_str()
      ->check(fedge::apps::between(1, 1024))
      ->needs("--trainer");
  fedge::apps::add_threads(*command, options.threads, kThreadsHelp);
  fedge::apps::add_log_level(*command, options.log_level);
  return command;
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
  fedge::apps::add_threads(*command, options.threads, kThreadsHelp);
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
  const auto* run_command = add_run(app, options);
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
    if (*strategies_command) return list_strategies(options);
    return *run_command ? run_experiment(options) : report(options);
  });
}
