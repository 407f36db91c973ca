#include "apps/sim_program.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "apps/commands/pretrain.h"
#include "apps/commands/replay.h"
#include "apps/common.h"
#include "apps/studies/attack_command.h"
#include "apps/studies/gossip_command.h"
#include "apps/studies/overlay_command.h"
#include "apps/studies/swarm_command.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "server/report/console.h"
#include "server/report/run_output.h"
#include "sim/concrete.h"
#include "sim/noise_key.h"
#include "sim/simulation.h"
#include "sim/update_spool.h"

namespace {

constexpr const char* kProgram = "fedge-sim";
constexpr const char* kExamples = R"(
Examples:
  fedge-sim run examples/fashion-mlp.toml --out out/fashion
  fedge-sim run examples/fashion-mlp.toml --set run.seed=8 --set training.local_epochs=2
  fedge-sim run examples/fashion-mlp.toml --mode concrete      real processes, sockets and TLS on loopback
  fedge-sim pretrain base.toml --out base.safetensors          train centrally what runs then begin with
  fedge-sim report out/fashion                                 write report.html and metrics.csv again
  fedge-sim replay /var/lib/fedge-coordinator                  carry a coordinator's run out again and compare
  fedge-sim overlay --nodes 256 --rounds 60 --seeds 2          Chord, Pastry and Kademlia, side by side
  fedge-sim attack crowd                                       hostile nodes in a directory without a centre
  fedge-sim swarm --nodes 25 --chunks 40 --seeds 2             a round without a server, and whose chunks are whose
  fedge-sim gossip examples/fashion-mlp.toml --degree 3        no common model: neighbours mix theirs
)";

volatile sig_atomic_t interrupt_signal = 0;

struct Options {
  std::string run_file;
  std::string out = "fedge-out";
  std::string mode = "abstract";
  std::vector<std::string> assignments;
  std::size_t threads = fedge::available_processors();
  std::string log_level = "warning";
  std::string report_directory;
  fedge::apps::ReplayCommand replay;
  fedge::apps::PretrainCommand pretrain;
  fedge::apps::OverlayCommand overlay;
  fedge::apps::AttackCommand attack;
  fedge::apps::SwarmCommand swarm;
  fedge::apps::GossipCommand gossip;
  std::string format = "table";
};

// Without SA_RESTART, so that waiting for a child ends too.
void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int number) { interrupt_signal = number; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

// Removes a scratch directory on every way out.
struct Scratch {
  std::filesystem::path path;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

fedge::Result<void> run_abstract(const Options& options, const fedge::sim::SimulationSpec& spec,
                                 const fedge::run::RunConfig& config) {
  auto built = fedge::learn::Task::build(config.task, config.seed);
  if (!built) return fedge::config::at_key(*config.source, built.error());
  const auto& task = *built;
  FEDGE_TRY(test, fedge::learn::load_test(config.task.data));
  FEDGE_TRY(output, fedge::server::RunOutput::create(options.out, config, fedge::apps::version()));
  fedge::ThreadPool threads(options.threads);
  const auto store = fedge::protocol::make_memory_chunk_store(std::size_t{1} << 36);
  std::optional<fedge::sim::UpdateSpool> spool;  // outlives whoever has an update in it
  if (fedge::sim::UpdateSpool::needed(config, task->model().layout()->size())) {
    FEDGE_TRY(opened, fedge::sim::UpdateSpool::open(std::filesystem::path(options.out) / "updates"));
    spool.emplace(std::move(opened));
  }
  FEDGE_TRY(state, fedge::server::RunState::create(config, task->model(), *test, *store, threads));
  fedge::server::RoundTable table(stdout, config.rounds);
  table.begin(config.name);
  std::optional<fedge::Error> failure;
  fedge::sim::take_noise_key(state);
  auto engine = fedge::server::make_engine(state);
  if (!engine) return fedge::config::at_key(*config.source, engine.error());
  fedge::sim::Simulation simulation(spec, *task, state, std::move(*engine), threads);
  if (spool) simulation.spool_to(spool->store());
  FEDGE_TRY_VOID(simulation.run(
      {.on_round =
           [&](const fedge::server::RoundMetrics& metrics) {
             if (const auto added = output.add(metrics); !added && !failure) failure = added.error();
             table.add(metrics);
           },
       .on_event = [](fedge::Time, const fedge::Event& event) { fedge::apps::log_event(event); },
       .interrupted = [&] { return interrupt_signal != 0 || failure.has_value(); }}));
  table.finish();
  if (failure) return *failure;
  FEDGE_TRY(models, state.load_models());
  FEDGE_TRY_VOID(output.finish(models));
  std::printf("%s", output.summary().c_str());
  return {};
}

fedge::Result<void> run_concrete(const Options& options, const fedge::sim::SimulationSpec& simulation,
                                 const fedge::run::RunConfig& config) {
  std::string scratch = (std::filesystem::temp_directory_path() / "fedge-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr)
    return fedge::system_error("cannot make directory", scratch, errno);
  const Scratch cleanup{scratch};
  std::vector<double> capabilities;
  for (std::uint32_t client = 0; client < config.task.data.partition.clients; ++client)
    capabilities.push_back(
        fedge::sim::Device(simulation, fedge::ClientId(client), fedge::Rng(config.seed)).capability());
  const fedge::learn::DataSpec& data = config.task.data;
  FEDGE_TRY(usage, fedge::sim::run_concrete(
                       {.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path(),
                        .run_file = options.run_file,
                        .assignments = options.assignments,
                        .out = options.out,
                        .scratch = scratch,
                        .capabilities = std::move(capabilities),
                        .data_directory = data.directory.empty() ? "" : data.dataset + "=" + data.directory,
                        .in_directory = simulation.directory.kind != fedge::sim::DirectorySpec::Kind::kNone,
                        .exchanging = config.dissemination.swarm,
                        .noise_seed = config.privacy.on() ? std::optional(config.seed) : std::nullopt,
                        .threads = options.threads,
                        .log_level = options.log_level,
                        .interrupted = [] { return interrupt_signal != 0; }}));
  std::printf("server    at most %.0f MB of memory, %.1f s of processor time\n",
              static_cast<double>(usage.peak_memory.value()) * 1e-6, usage.processor_seconds);
  return {};
}

int run_experiment(const Options& options) {
  fedge::apps::set_up_logging(kProgram, options.log_level);
  const auto document = fedge::apps::load_document(options.run_file, options.assignments);
  if (!document) return fedge::apps::report_failure(kProgram, document.error());
  const auto config = fedge::run::read_run_config(*document);
  if (!config) return fedge::apps::report_failure(kProgram, config.error());
  const auto simulation = fedge::sim::read_simulation(*document);
  if (!simulation) return fedge::apps::report_failure(kProgram, simulation.error());
  const bool concrete = options.mode == "concrete";
  if (concrete && simulation->attack.kind != fedge::sim::AttackKind::kNone)
    return fedge::apps::report_failure(
        kProgram, fedge::invalid("simulation.attack needs --mode abstract: the real client is not hostile"));
  if (concrete && simulation->availability.kind != fedge::sim::AvailabilityKind::kAlways)
    return fedge::apps::report_failure(
        kProgram,
        fedge::invalid("simulation.availability needs --mode abstract: real processes do not come and go"));
  if (const auto fits = fedge::sim::check_attack(*simulation, *config); !fits)
    return fedge::apps::report_failure(kProgram, fits.error());
  if (const auto fits = fedge::sim::check_availability(*simulation, *config); !fits)
    return fedge::apps::report_failure(kProgram, fits.error());
  catch_interrupts();
  const auto done =
      concrete ? run_concrete(options, *simulation, *config) : run_abstract(options, *simulation, *config);
  if (interrupt_signal != 0) return 128 + interrupt_signal;
  return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
}

int pretrain(Options& options) {
  const auto document = fedge::apps::load_document(options.run_file, options.assignments);
  if (!document) return fedge::apps::report_failure(kProgram, document.error());
  const auto config = fedge::run::read_run_config(*document);
  if (!config) return fedge::apps::report_failure(kProgram, config.error());
  catch_interrupts();
  options.pretrain.threads = options.threads;
  options.pretrain.interrupted = [] { return interrupt_signal != 0; };
  const auto done = fedge::apps::pretrain(*config, options.pretrain, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
}

int report(const Options& options) {
  const auto written = fedge::server::rewrite_report(options.report_directory);
  return written ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, written.error());
}

int replay(Options& options) {
  fedge::apps::set_up_logging(kProgram, options.log_level);
  options.replay.threads = options.threads;
  options.replay.json = options.format == "json";
  const auto done = fedge::apps::replay(options.replay, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
}

int overlay(Options& options) {
  options.overlay.json = options.format == "json";
  const auto done = fedge::apps::run_overlay_command(options.overlay, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
}

int attack(Options& options) {
  options.attack.json = options.format == "json";
  const auto done = fedge::apps::run_attack_command(options.attack, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
}

int serverless(Options& options) {
  options.swarm.json = options.format == "json";
  const auto done = fedge::apps::run_swarm_command(options.swarm, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
}

int gossip(Options& options) {
  options.gossip.json = options.format == "json";
  const auto done = fedge::apps::run_gossip_command(options.gossip, stdout);
  return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
}

void add_threads(CLI::App& command, Options& options) {
  command.add_option("--threads", options.threads, "Threads; the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
}

void add_format(CLI::App& command, Options& options) {
  command.add_option("--format", options.format, "table or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "json"}));
}

CLI::App* add_run(CLI::App& app, Options& options) {
  auto* command = app.add_subcommand("run", "Run a run file");
  command->add_option("file", options.run_file, "Run file (TOML)")->required();
  command->add_option("--out", options.out, "Where metrics, model and report go")->capture_default_str();
  command->add_option("--mode", options.mode, "abstract: virtual time; concrete: real processes on loopback")
      ->capture_default_str()
      ->check(CLI::IsMember({"abstract", "concrete"}));
  command->add_option("--set", options.assignments, "Override a key of the run file: section.key=value")
      ->take_all();
  add_threads(*command, options);
  command->add_option("--log-level", options.log_level, "trace, debug, info, warning, error or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  return command;
}

CLI::App* add_pretrain(CLI::App& app, Options& options) {
  auto* command =
      app.add_subcommand("pretrain",
                         "Train a run file's model on all of its data in one place: the base that "
                         "runs name as model.base. An interrupt ends it with what has been learned");
  command->add_option("file", options.run_file, "Run file (TOML)")->required();
  command->add_option("--out", options.pretrain.out, "The model (.safetensors)")->capture_default_str();
  command
      ->add_option("--labels", options.pretrain.labels,
                   "Train on samples of these labels alone, as in: 0,1,2")
      ->delimiter(',');
  command->add_option("--set", options.assignments, "Override a key of the run file: section.key=value")
      ->take_all();
  add_threads(*command, options);
  return command;
}

CLI::App* add_replay(CLI::App& app, Options& options) {
  auto* command = app.add_subcommand(
      "replay",
      "Carry a coordinator's run out again from its journal, train every accepted update again, and compare "
      "updates and models with those that were offered and recorded. Changes nothing; the coordinator may be "
      "running. Ends with 1 and names the first difference if there is one");
  command->add_option("directory", options.replay.directory, "The coordinator's data directory")->required();
  command->add_option("--run", options.replay.run, "The run's number (default: the last run)")
      ->check(CLI::PositiveNumber);
  command->add_option("--until", options.replay.until, "The last round to be replayed")
      ->check(CLI::PositiveNumber);
  add_threads(*command, options);
  add_format(*command, options);
  return command;
}

}  // namespace

int fedge::apps::sim_main(int argc, char** argv) {
  Options options;
  CLI::App app("Simulates federated runs: virtual devices and links, real training, real models.", kProgram);
  app.footer(kExamples);
  app.set_version_flag("--version", fedge::apps::software(kProgram));
  app.require_subcommand(1);
  const auto* run_command = add_run(app, options);
  const auto* pretrain_command = add_pretrain(app, options);
  const auto* replay_command = add_replay(app, options);
  auto* overlay_command = fedge::apps::add_overlay(app, options.overlay);
  add_format(*overlay_command, options);
  auto* attack_command = fedge::apps::add_attack(app, options.attack);
  add_format(*attack_command, options);
  auto* swarm_command = fedge::apps::add_swarm(app, options.swarm);
  add_format(*swarm_command, options);
  auto* gossip_command = fedge::apps::add_gossip(app, options.gossip);
  add_format(*gossip_command, options);
  auto* report_command = app.add_subcommand("report", "Write a run's report.html and metrics.csv again");
  report_command->add_option("directory", options.report_directory, "A run's output directory")->required();
  fedge::apps::take_one_value_each(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? fedge::apps::kOk : fedge::apps::kWrongUsage;
  }
  return fedge::apps::run_safely(kProgram, [&] {
    if (*replay_command) return replay(options);
    if (*pretrain_command) return pretrain(options);
    if (*overlay_command) return overlay(options);
    if (*attack_command) return attack(options);
    if (*swarm_command) return serverless(options);
    if (*gossip_command) return gossip(options);
    return *run_command ? run_experiment(options) : report(options);
  });
}
