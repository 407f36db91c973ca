#include "apps/simulation/run_command.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "apps/cli/command_line.h"
#include "apps/cli/validators.h"
#include "apps/common.h"
#include "apps/simulation/interrupts.h"
#include "apps/simulation/runs.h"
#include "learn/models/external.h"
#include "server/report/run_output.h"
#include "sim/concrete.h"
#include "sim/first_model.h"
#include "sim/ranks/mpi_ranks.h"
#include "sim/ranks/shared_work.h"

namespace fedge::apps {
namespace {

using namespace std::chrono_literals;
// Rank 0 also receives the signal that ends another rank, and ends the run in order.
constexpr auto kSignalBelongsToAll = 3s;

bool in_directory(const sim::SimulationSpec& simulation) {
  return simulation.directory.kind != sim::DirectorySpec::Kind::kNone;
}

class Run {
 public:
  Run(RunCommand& options, const std::string& program, sim::MpiRanks* ranks)
      : options_(options), program_(program), ranks_(ranks) {}

  // Returns the exit code.
  int execute();
  // Ends together with the other ranks.
  int end(int code);

 private:
  bool first() const { return ranks_ == nullptr || ranks_->rank() == 0; }
  bool concrete() const { return options_.mode == "concrete"; }
  int fail(const Error& error);
  Result<void> claim_results(const run::RunConfig& config);
  Result<std::optional<client::TrainerOptions>> trainer_program() const;
  Result<sim::Experiment> read();
  Result<sim::Experiment> read_with_first_model(const config::Document& run_file,
                                                const run::RunConfig& config);
  Result<void> check(const sim::Experiment& experiment) const;
  std::optional<std::string> cannot_continue(const sim::Experiment& experiment) const;
  Result<void> simulate(const sim::Experiment& experiment);
  Result<void> run_processes(const sim::Experiment& experiment);
  int report_interrupt(const sim::Experiment& experiment);

  RunCommand& options_;
  const std::string& program_;
  sim::MpiRanks* ranks_;  // null: this process is alone
  std::optional<Error> failure_;
};

// Only rank 0 prints errors. The others send it theirs.
int Run::fail(const Error& error) {
  failure_ = error;
  return first() ? report_failure(program_, error) : kFailed;
}

// Chooses and claims the directory of the results, if that has not been done.
Result<void> Run::claim_results(const run::RunConfig& config) {
  if (options_.claim) return {};
  FEDGE_TRY(claim, server::choose_results(
                       {.out = options_.out,
                        .force = options_.force,
                        .going_on = options_.resume ? std::optional(config.canonical) : std::nullopt}));
  options_.results = claim.directory();
  options_.claim = std::move(claim);
  return {};
}

// The trainer program that was given; nothing for the built-in trainer.
Result<std::optional<client::TrainerOptions>> Run::trainer_program() const {
  FEDGE_TRY(trainer, trainer_of(options_.trainer));
  if (trainer) trainer->on_event = log_event;
  return trainer;
}

// Reads the run file again, with the first model of the trainer program.
Result<sim::Experiment> Run::read_with_first_model(const config::Document& run_file,
                                                   const run::RunConfig& config) {
  if (ranks_ != nullptr)
    return config::at_key(run_file, invalid("model.kind: on several ranks an external model needs a file to "
                                            "start from; set model.base"));
  FEDGE_TRY(trainer, trainer_program());
  FEDGE_TRY_VOID(claim_results(config));
  FEDGE_TRY(completed,
            sim::add_first_model(run_file, config, *trainer, options_.results / "first.safetensors"));
  return sim::read_experiment(completed);
}

Result<sim::Experiment> Run::read() {
  FEDGE_TRY(document, load_document(options_.run_file, options_.assignments));
  FEDGE_TRY(experiment, sim::read_experiment(document, concrete()));
  run::RunConfig& config = experiment.run;
  if (concrete() && learn::is_external(config.task.model))
    return config::at_key(document,
                          invalid("model.kind: the processes of --mode concrete have no trainer program for "
                                  "an external model; simulate it with --trainer"));
  FEDGE_TRY_VOID(use_data(options_.data, config.task.data));
  if (options_.check || options_.trainer.command.empty() || !sim::lacks_first_model(config))
    return experiment;
  FEDGE_TRY(again, read_with_first_model(document, config));
  again.run.task.data.directory = config.task.data.directory;
  return again;
}

// Why a process cannot continue what this one begins; nothing if it can.
std::optional<std::string> Run::cannot_continue(const sim::Experiment& experiment) const {
  if (concrete()) return "its clients are processes";
  return sim::cannot_continue(experiment.simulation);
}

Result<void> Run::check(const sim::Experiment& experiment) const {
  if (const auto obstacle = cannot_continue(experiment); options_.resume && obstacle)
    return Error{ErrorCode::kUnsupported,
                 "--resume: this run cannot be continued: " + *obstacle + "; run it without --resume"};
  if (concrete() && ranks_ != nullptr)
    return Error{ErrorCode::kUnsupported,
                 "--mode concrete starts its own processes on this machine; start it without mpirun"};
  return {};
}

Result<void> Run::simulate(const sim::Experiment& experiment) {
  FEDGE_TRY(trainer, trainer_program());
  std::optional<std::chrono::steady_clock::time_point> noticed;
  const auto interrupted = [&] {
    if (interrupt_signal() == 0) return false;
    if (first()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (!noticed) noticed = now;
    return now - *noticed > kSignalBelongsToAll;
  };
  const AbstractRun run{.trainer = std::move(trainer),
                        .workers = options_.workers,
                        .threads = options_.threads,
                        .resume = options_.resume,
                        .checkpoint_every = std::chrono::duration<double>(options_.checkpoint_every),
                        .ranks = ranks_,
                        .claim = [&]() -> Result<std::filesystem::path> {
                          FEDGE_TRY_VOID(claim_results(experiment.run));
                          return options_.results;
                        },
                        .interrupted = interrupted};
  if (first()) return run_abstract(run, experiment.simulation, experiment.run);
  const auto done = run_share(run, experiment.simulation, experiment.run);
  if (interrupted()) return Error{ErrorCode::kUnavailable, "a signal has ended this rank"};
  return done;
}

Result<void> Run::run_processes(const sim::Experiment& experiment) {
  if (in_directory(experiment.simulation)) FEDGE_TRY_VOID(sim::check_directory_program(own_program()));
  FEDGE_TRY_VOID(claim_results(experiment.run));
  return run_concrete({.program = own_program(),
                       .run_file = options_.run_file,
                       .assignments = options_.assignments,
                       .results = options_.results,
                       .in_directory = in_directory(experiment.simulation),
                       .threads = options_.threads,
                       .log_level = options_.log_level,
                       .interrupted = [] { return interrupt_signal() != 0; }},
                      experiment.simulation, experiment.run);
}

// Says how far the run got. The results of its rounds are in the files; of a concrete run the report is
// missing.
int Run::report_interrupt(const sim::Experiment& experiment) {
  const std::uint64_t rounds = experiment.run.rounds;
  std::fflush(stdout);
  const auto metrics = server::read_metrics(options_.results / "metrics.jsonl");
  const std::uint64_t done = metrics && !metrics->empty() ? metrics->back().round : 0;
  if (done > 0 && concrete()) (void)server::rewrite_report(options_.results);
  const auto obstacle = cannot_continue(experiment);
  const std::string results = options_.results.string();
  if (done < rounds)
    fail({ErrorCode::kUnavailable, "interrupted after " + std::to_string(done) + " of " +
                                       std::to_string(rounds) + " rounds; " +
                                       (obstacle ? "the run cannot be continued (" + *obstacle +
                                                       "), so start it again; --force overwrites " + results
                                                 : "continue it with --out " + results + " --resume")});
  return 128 + interrupt_signal();
}

int Run::execute() {
  if (concrete() && !options_.trainer.command.empty()) {
    const std::string message =
        "--trainer trains for all clients of a simulation; with --mode concrete each client is a process of "
        "its "
        "own, so start fedge-client run --trainer for each instead";
    return first() ? report_wrong_usage(program_, message) : fail(invalid(message));
  }
  const auto experiment = read();
  if (!experiment) return fail(experiment.error());
  if (const auto possible = check(*experiment); !possible) return fail(possible.error());
  if (first()) print_notes(experiment->run);
  if (options_.check) {
    if (first()) std::printf("%s: the run file is valid\n", options_.run_file.c_str());
    return kOk;
  }
  catch_interrupts();
  const auto done = concrete() ? run_processes(*experiment) : simulate(*experiment);
  if (interrupt_signal() != 0 && first()) return report_interrupt(*experiment);
  return done ? kOk : fail(done.error());
}

int Run::end(int code) {
  if (ranks_ == nullptr) return code;
  if (code == kOk) {
    const auto left = ranks_->leave();
    if (left) return kOk;
    code = fail(left.error());
  }
  std::fflush(stdout);
  if (!first() && failure_) {
    sim::broadcast_failure(*ranks_, *failure_);
    // Rank 0 ends all ranks when it hears of it.
    std::this_thread::sleep_for(std::chrono::seconds(options_.rank_timeout));
    report_failure(program_, failure_->with_prefix("rank " + std::to_string(ranks_->rank()) + ": "));
  }
  ranks_->end_all(code);
  return code;
}

}  // namespace

CLI::App* add_run(CLI::App& app, RunCommand& options) {
  auto* command = app.add_subcommand("run");
  add_run_file(*command, options.run_file);
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
      ->check(between(0, 86400));
  command
      ->add_option("--mode", options.mode,
                   "abstract: virtual time in one process; concrete: real processes on loopback")
      ->type_name("MODE")
      ->capture_default_str()
      ->check(one_of({"abstract", "concrete"}));
  add_assignments(*command, options.assignments);
  add_data(*command, options.data);
  add_trainer_options(*command, options.trainer);
  command
      ->add_option("--workers", options.workers,
                   "Number of processes of the trainer that train at the same time, each for any client")
      ->capture_default_str()
      ->check(between(1, 1024))
      ->needs("--trainer");
  add_threads(*command, options.threads, kThreadsHelp);
  command
      ->add_option(
          "--rank-timeout", options.rank_timeout,
          "With several ranks (mpirun): end the run, which --resume continues, when a rank has shown "
          "no sign of life for this long")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(between(5, 86400));
  add_log_level(*command, options.log_level);
  return command;
}

int run_simulation(RunCommand& options, const std::string& program) {
  set_up_logging(program, options.log_level);
  const auto ranks = sim::MpiRanks::join(std::chrono::seconds(options.rank_timeout));
  if (!ranks) return report_failure(program, ranks.error());
  Run run(options, program, ranks->get());
  return run.end(run.execute());
}

}  // namespace fedge::apps
