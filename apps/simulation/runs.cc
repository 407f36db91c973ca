#include "apps/simulation/runs.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "apps/common.h"
#include "apps/simulation/results/finished_run.h"
#include "core/config/document.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "learn/data/dataset.h"
#include "learn/data/files/own_data.h"
#include "learn/models/external.h"
#include "learn/task.h"
#include "protocol/chunks/chunk_store.h"
#include "server/report/console.h"
#include "server/report/model_files.h"
#include "server/report/results_place.h"
#include "server/report/run_output.h"
#include "server/report/run_verdict.h"
#include "server/run_state.h"
#include "sim/concrete.h"
#include "sim/devices.h"
#include "sim/energy/energy_file.h"
#include "sim/noise_key.h"
#include "sim/participants/participants.h"
#include "sim/ranks/shared_work.h"
#include "sim/simulation.h"
#include "sim/training/update_spool.h"
#include "sim/training/virtual_trainers.h"

namespace fedge::apps {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Removes the checkpoints of a former run, which --force overwrites.
Result<void> remove_checkpoints(const std::filesystem::path& results) {
  std::error_code error;
  std::filesystem::remove_all(results / kCheckpoints, error);
  if (error) return system_error("cannot remove", results / kCheckpoints, error.value());
  return {};
}

// Removes a scratch directory when the scope ends.
struct Scratch {
  std::filesystem::path path;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

// The path of each client's data, with the data's name; empty: the default directories.
Result<std::vector<std::string>> client_data(const learn::DataSpec& data) {
  std::vector<std::string> named;
  if (is_own(data)) {
    FEDGE_TRY(paths, learn::client_paths(data));
    for (const auto& path : paths) named.push_back(data_name(data) + "=" + path.string());
  } else if (!data.directory.empty()) {
    named.assign(data.partition.clients, data_name(data) + "=" + data.directory);
  }
  return named;
}

// Reads the task of a simulation.
Result<std::shared_ptr<const learn::Task>> build_task(const AbstractRun& options,
                                                      const run::RunConfig& config) {
  if (!options.trainer && learn::is_external(config.task.model))
    return config::at_key(
        *config.source,
        invalid("model.kind: only a trainer program can compute an external model; use --trainer"));
  auto built = learn::Task::build(config.task, config.seed, config.evaluation.on_clients());
  if (!built) return config::at_key(*config.source, built.error());
  return *built;
}

// The data on which models are evaluated; null: they are not.
Result<std::shared_ptr<const learn::Dataset>> load_test(const run::RunConfig& config) {
  if (!config.evaluation.on_coordinator()) return std::shared_ptr<const learn::Dataset>();
  return learn::load_evaluation(config.task.data, Rng(config.seed));
}

// The parts of a simulation, in the order in which they need each other.
struct Parts {
  Parts(const AbstractRun& run, const sim::SimulationSpec& what, const run::RunConfig& how,
        std::shared_ptr<const learn::Task> trained)
      : options(run),
        spec(what),
        config(how),
        task(std::move(trained)),
        threads(run.trainer ? std::max(run.threads, run.workers) : run.threads),
        store(protocol::make_memory_chunk_store(std::size_t{1} << 36)) {
    if (run.ranks != nullptr) shared.emplace(*run.ranks, sim::values_travel(spec, config), run.interrupted);
  }
  std::size_t rank() const { return options.ranks != nullptr ? options.ranks->rank() : 0; }
  sim::Checkpoints::Options checkpoints_in(const std::filesystem::path& results) const {
    return {.directory = results / kCheckpoints,
            .program = version(),
            .run = config.id,
            .results = results / "metrics.jsonl",
            .every = options.checkpoint_every,
            .rank = rank(),
            .ranks = options.ranks != nullptr ? options.ranks->size() : 1};
  }
  Result<void> build(const std::filesystem::path& results, const learn::Dataset* test);
  // Uses the checkpoints, if there are any.
  Result<void> take(std::optional<sim::Checkpoints>& checkpoints, const std::filesystem::path& results) {
    if (checkpoints) return simulation->checkpoint_to(*checkpoints, *store);
    simulation->spill_to(results);
    return {};
  }

  // Records the participants after the first `former` rounds, if the run file wants them.
  Result<void> record_participants(const std::filesystem::path& results, std::uint64_t former) {
    if (!spec.participants) return sim::Participants::remove(results);
    FEDGE_TRY(opened, sim::Participants::open(results, former));
    participants.emplace(std::move(opened));
    simulation->record_to(*participants);
    return {};
  }

  const AbstractRun& options;
  const sim::SimulationSpec& spec;
  const run::RunConfig& config;
  std::shared_ptr<const learn::Task> task;
  ThreadPool threads;
  std::unique_ptr<protocol::ChunkStore> store;
  std::optional<sim::SharedWork> shared;
  std::optional<sim::UpdateSpool> spool;  // must outlive all updates in it
  std::optional<server::RunState> state;
  std::unique_ptr<sim::VirtualTrainers> trainers;
  std::optional<sim::Participants> participants;  // that the simulation records
  std::optional<sim::Simulation> simulation;
};

Result<void> Parts::build(const std::filesystem::path& results, const learn::Dataset* test) {
  const bool on_arrival = !options.trainer && sim::computes_on_arrival(spec, config);
  if (sim::UpdateSpool::needed(config, task->model().layout()->size(), on_arrival)) {
    const std::string name = rank() == 0 ? "updates" : "updates." + std::to_string(rank());
    FEDGE_TRY(opened, sim::UpdateSpool::open(results / name));
    spool.emplace(std::move(opened));
  }
  FEDGE_TRY(created, server::RunState::create(config, task->model(), test, *store, threads));
  state.emplace(std::move(created));
  sim::take_noise_key(*state);
  auto engine = server::make_engine(*state);
  if (!engine) return config::at_key(*config.source, engine.error());
  if (options.trainer) {
    FEDGE_TRY(started, sim::VirtualTrainers::start(*options.trainer, options.workers, *task, config, test));
    trainers = std::move(started);
    if (learn::is_external(config.task.model) && rank() == 0)
      state->evaluate_with([this](std::span<const float> model, RoundNumber round) {
        return trainers->evaluate(model, round);
      });
  }
  simulation.emplace(spec, *task, *state, std::move(*engine), threads,
                     trainers ? trainers->each() : std::vector<client::Elsewhere>());
  if (spool) simulation->spool_to(spool->store());
  // A trainer program evaluates its models on rank 0 alone.
  if (shared) simulation->share(*shared, learn::is_external(config.task.model) ? nullptr : test);
  return {};
}

// Reports what this rank has sent to the others.
void report_traffic(const sim::MpiRanks& ranks) {
  const sim::MpiRanks::Traffic traffic = ranks.traffic();
  log_event(Event{Severity::kInfo, "simulation.ranks", {}}
                .with("ranks", static_cast<std::int64_t>(ranks.size()))
                .with("bytes_sent", static_cast<std::int64_t>(traffic.bytes_sent))
                .with("bytes_reduced", static_cast<std::int64_t>(traffic.bytes_reduced))
                .with("seconds_reducing", traffic.seconds_reducing)
                .with("seconds_waiting", traffic.seconds_waiting));
}

}  // namespace

Result<void> run_concrete(const ConcreteRun& options, const sim::SimulationSpec& spec,
                          const run::RunConfig& config) {
  std::string scratch = (std::filesystem::temp_directory_path() / "fedge-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) return system_error("cannot make directory", scratch, errno);
  const Scratch cleanup{scratch};
  const std::size_t clients = config.task.data.partition.clients;
  std::vector<double> capabilities;
  std::vector<std::shared_ptr<const DevicePower>> powers;
  std::optional<sim::DeviceEnergy> energy;
  if (spec.energy.on) energy.emplace(spec.energy, TrainingWork(), false, clients, Rng(config.seed));
  for (std::uint32_t client = 0; client < clients; ++client) {
    const sim::Device device(spec, ClientId(client), Rng(config.seed));
    capabilities.push_back(device.capability());
    if (energy) powers.push_back(sim::described_power(*energy, ClientId(client), device));
  }
  FEDGE_TRY(paths, client_data(config.task.data));
  FEDGE_TRY_VOID(server::remove_results(options.results, config.task.model.base));
  FEDGE_TRY_VOID(remove_checkpoints(options.results));
  FEDGE_TRY_VOID(sim::Participants::remove(options.results));
  FEDGE_TRY_VOID(sim::remove_energy_file(options.results));
  FEDGE_TRY(usage,
            sim::run_concrete({.program = options.program,
                               .run_file = options.run_file,
                               .assignments = options.assignments,
                               .out = options.results,
                               .scratch = scratch,
                               .capabilities = std::move(capabilities),
                               .labels = spec.labels,
                               .powers = std::move(powers),
                               .data = std::move(paths),
                               .in_directory = options.in_directory,
                               .exchanging = config.dissemination.swarm,
                               .noise_seed = config.privacy.on() ? std::optional(config.seed) : std::nullopt,
                               .threads = options.threads,
                               .log_level = options.log_level,
                               .interrupted = options.interrupted}));
  std::printf("server    peak memory %.0f MB, CPU time %.1f s\n",
              static_cast<double>(usage.peak_memory.value()) * 1e-6, usage.processor_seconds);
  return {};
}

// Adds a round to the results, with its models if run.keep_models keeps them.
Result<void> keep(server::RunOutput& output, const server::RoundMetrics& metrics,
                  const server::RunState& state) {
  if (server::keeps_model(state.config(), metrics.round)) {
    FEDGE_TRY(models, state.load_models(server::RunState::Which::kLast));
    FEDGE_TRY_VOID(output.keep(metrics.round, models));
  }
  return output.add(metrics);
}

Result<void> run_abstract(const AbstractRun& options, const sim::SimulationSpec& spec,
                          const run::RunConfig& config) {
  FEDGE_TRY(task, build_task(options, config));
  FEDGE_TRY(test, load_test(config));
  FEDGE_TRY(results, options.claim());
  Parts parts(options, spec, config, task);
  if (options.resume && is_complete(results)) {
    if (parts.shared) parts.shared->broadcast("");
    std::printf("%s holds the complete results of this run\n", results.c_str());
    return {};
  }
  if (parts.shared) parts.shared->broadcast(std::filesystem::absolute(results).string());
  std::optional<sim::Checkpoints> checkpoints;
  if (!sim::cannot_continue(spec)) {
    FEDGE_TRY(opened, sim::Checkpoints::open(parts.checkpoints_in(results), options.resume));
    checkpoints.emplace(std::move(opened));
    if (parts.shared) FEDGE_TRY_VOID(checkpoints->show(*parts.shared));
  } else {
    FEDGE_TRY_VOID(remove_checkpoints(results));
  }
  const std::uint64_t former = checkpoints ? checkpoints->rounds() : 0;
  FEDGE_TRY(output, server::RunOutput::create(results, config, version(), former));
  server::remove_models_after(results, former);
  FEDGE_TRY_VOID(sim::remove_energy_file(results));
  if (former > 0)
    std::printf("continues after round %llu of %u\n", static_cast<unsigned long long>(former), config.rounds);
  server::RoundTable table(stdout, config.rounds);
  std::optional<Error> failure;
  server::RunVerdict verdict;
  FEDGE_TRY_VOID(parts.build(results, test.get()));
  table.begin(config.name, learn::task_of(config.task.data));
  sim::Simulation& simulation = *parts.simulation;
  FEDGE_TRY_VOID(parts.take(checkpoints, results));
  FEDGE_TRY_VOID(parts.record_participants(results, former));
  std::uint64_t completed = 0;
  const Stopwatch wall;
  const auto simulated =
      simulation.run({.on_round =
                          [&](const server::RoundMetrics& metrics) {
                            const auto added = keep(output, metrics, *parts.state);
                            if (!added && !failure) failure = added.error();
                            verdict.add(metrics);
                            table.add(metrics);
                            ++completed;
                          },
                      .on_repeated =
                          [&](std::uint64_t round) {
                            verdict.add(output.rounds()[round - 1]);
                            ++completed;
                          },
                      .on_event =
                          [&](Time, const Event& event) {
                            verdict.add(event);
                            if (!simulation.repeating()) log_event(event);
                          },
                      .interrupted = [&] { return options.interrupted() || failure.has_value(); }});
  table.finish();
  if (failure) return *failure;
  const bool interrupted = options.interrupted();
  if (!simulated && !interrupted && completed == 0) return simulated.error();
  FEDGE_TRY(models, parts.state->load_models());
  const std::string failed = interrupted ? std::string()
                             : simulated ? verdict.failure()
                                         : simulated.error().message;
  FEDGE_TRY_VOID(output.finish(models, failed));
  if (simulation.energy() != nullptr)
    FEDGE_TRY_VOID(sim::write_energy_file(results, *simulation.devices(), *simulation.energy()));
  if (checkpoints && simulated && !interrupted) FEDGE_TRY_VOID(checkpoints->remove());
  std::printf("%s", output.summary().c_str());
  log_event(Event{Severity::kInfo, "simulation.ended", {}}
                .with("virtual_seconds", to_seconds(simulation.now()))
                .with("seconds", wall.seconds())
                .with("events", static_cast<std::int64_t>(simulation.events())));
  if (options.ranks != nullptr) report_traffic(*options.ranks);
  if (!simulated && !interrupted) return simulated.error();
  if (!failed.empty()) return Error{ErrorCode::kUnavailable, failed};
  return {};
}

Result<void> run_share(const AbstractRun& options, const sim::SimulationSpec& spec,
                       const run::RunConfig& config) {
  FEDGE_TRY(task, build_task(options, config));
  Parts parts(options, spec, config, task);
  FEDGE_TRY(directory, parts.shared->broadcast_of_first({}));
  if (directory.empty()) return {};  // rank 0 has nothing to do
  const std::filesystem::path results = directory;
  std::optional<sim::Checkpoints> checkpoints;
  if (!sim::cannot_continue(spec)) {
    FEDGE_TRY(received, sim::Checkpoints::receive(parts.checkpoints_in(results), *parts.shared));
    checkpoints.emplace(std::move(received));
  }
  std::shared_ptr<const learn::Dataset> test;
  if (!learn::is_external(config.task.model)) {
    FEDGE_TRY(loaded, load_test(config));
    test = std::move(loaded);
  }
  FEDGE_TRY_VOID(parts.build(results, test.get()));
  FEDGE_TRY_VOID(parts.take(checkpoints, results));
  return parts.simulation->run(
      {.on_round = [](const server::RoundMetrics&) {}, .interrupted = options.interrupted});
}

}  // namespace fedge::apps
