#include "server/coordinator/run_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/config/own_part.h"
#include "core/event.h"
#include "core/platform/files.h"
#include "learn/models/external.h"
#include "server/audit_log.h"
#include "server/data_directory.h"
#include "server/engine/make_engine.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxStoredPayload = std::size_t{64} << 30;

std::filesystem::path chunks_of(const std::filesystem::path& data_directory, RunNumber run) {
  return run_directory(data_directory, run) / "chunks";
}

Result<run::RunConfig> read_record(const RunRecord& record) {
  FEDGE_TRY(document, config::parse_toml(record.document, "run " + std::to_string(record.number.value()),
                                         config::PlaceStyle::kStored));
  FEDGE_TRY(config, run::read_run_config(document));
  config.id = record.id;
  return config;
}

struct TestBench {
  std::shared_ptr<const learn::Dataset> test;  // null if the run is not evaluated here
  std::unique_ptr<learn::Model> model;
  std::vector<std::uint32_t> partition;
};

Result<TestBench> make_bench(const run::RunConfig& config) {
  const learn::DataSpec& data = config.task.data;
  TestBench bench;
  FEDGE_TRY(info, learn::describe(data));
  FEDGE_TRY(model, learn::make_model(config.task.model, info.shape, info.target()));
  bench.model = std::move(model);
  if (config.evaluation.on_coordinator() && learn::is_external(config.task.model))
    return Error{
        ErrorCode::kUnsupported,
        "evaluation.where: the coordinator cannot evaluate an external model; use \"none\", or clients "
        "with data of their own (data.partition.kind = \"own\"), which evaluate it with their programs"};
  if (config.evaluation.on_coordinator()) {
    FEDGE_TRY(test, learn::load_evaluation(data, Rng(config.seed)));
    bench.test = std::move(test);
  }
  if (is_own(data)) return bench;
  // Checks the partition here, so that not every client reports the same error. The coordinator's host may
  // lack the training set.
  auto partition = learn::partition_sizes(data, Rng(config.seed));
  if (!partition && partition.error().code != ErrorCode::kNotFound) return partition.error();
  if (partition) bench.partition = std::move(*partition);
  return bench;
}

// Reports that the noise key of a running run is lost. A round computed again gets other noise, and two
// versions of a model together contain less noise than one.
Result<void> alarm(const std::filesystem::path& data_directory, RunParts& parts) {
  const std::string reason = (data_directory / "noise.key").string() +
                             " was missing although this run with differential privacy had already begun, "
                             "and a new key was created; restore the old file from a backup, or stop the run";
  parts.recovered.events.push_back(Event{Severity::kError, "noise.key_lost", {}}.with("reason", reason));
  return AuditLog(data_directory)
      .append({operator_name(),
               "noise.key_lost",
               "run " + std::to_string(parts.record.number.value()),
               {{"reason", reason}}});
}

RunFacts facts_of(const run::RunConfig& config, const learn::Model& model) {
  RunFacts facts{.buffered = config.strategy.schedule.buffered,
                 .model_bytes = std::uint64_t{model.layout()->size()} * sizeof(float),
                 .last_round = config.rounds};
  if (!config.privacy.on()) return facts;
  // With several tracks, each phase is a release: the run ends earlier.
  facts.last_round = std::min<std::uint64_t>(facts.last_round, config.privacy.most_releases);
  facts.delta = config.privacy.delta;
  if (std::isfinite(config.privacy.epsilon)) facts.epsilon = config.privacy.epsilon;
  return facts;
}

Result<RunParts> open_parts(const std::filesystem::path& data_directory, const RunRecord& record,
                            const run::RunConfig& config, std::size_t threads) {
  FEDGE_TRY(bench, make_bench(config));
  RunParts parts{.record = record, .model = std::move(bench.model), .test = std::move(bench.test)};
  FEDGE_TRY(store, open_sqlite_store(run_store_path(data_directory)));
  parts.store = std::move(store);
  const auto chunks = chunks_of(data_directory, record.number);
  FEDGE_TRY_VOID(make_directory(run_directory(data_directory, record.number), 0700));
  const protocol::FileStoreOptions kept{.max_bytes = kMaxStoredPayload, .durable = true, .all_wanted = true};
  FEDGE_TRY(models, protocol::open_file_chunk_store(models_of(data_directory, record.number), kept));
  FEDGE_TRY(updates, protocol::open_file_chunk_store(chunks / "updates", kept));
  parts.models = std::make_unique<DeferredRemovals>(std::move(models));
  parts.updates = std::move(updates);
  parts.threads = std::make_unique<ThreadPool>(threads);
  FEDGE_TRY(state, RunState::create(config, *parts.model, parts.test.get(), *parts.models, *parts.threads));
  parts.state = std::make_unique<RunState>(std::move(state));
  if (config.privacy.of_sums()) {
    const bool had_key = identity_of(data_directory / "noise.key").has_value();
    FEDGE_TRY(noise, open_noise_key(data_directory));
    parts.made_noise_key = !had_key;
    const auto number = static_cast<std::uint64_t>(record.number.value());
    parts.state->take_noise_key(privacy::run_noise_root(noise, number));
  }
  FEDGE_TRY(engine, make_engine(*parts.state));
  parts.watch = std::make_shared<RunWatch>(facts_of(config, *parts.model));
  Recovery recovery(
      {*parts.store, record.number, *parts.state, *parts.updates, halves_of(data_directory, record.number)});
  parts.conductor = std::make_unique<Conductor>(
      Conductor::Setup{.config = parts.state->config(),
                       .layout = parts.state->rules().layout,
                       .samples_of = [sizes = std::move(bench.partition)](
                                         ClientId client) -> std::optional<std::uint64_t> {
                         if (sizes.empty()) return std::nullopt;
                         return sizes[client.value()];
                       }},
      std::move(engine), recovery.ports(parts.watch.get()));
  FEDGE_TRY(recovered, recovery.run(*parts.conductor));
  parts.recovered = std::move(recovered);
  if (parts.made_noise_key && parts.recovered.entries > 0) FEDGE_TRY_VOID(alarm(data_directory, parts));
  parts.models->settle();
  parts.updates->settle();
  return parts;
}

}  // namespace

Result<std::pair<run::RunConfig, std::unique_ptr<learn::Model>>> model_of(const RunRecord& record) {
  FEDGE_TRY(config, read_record(record));
  FEDGE_TRY(info, learn::describe(config.task.data));
  FEDGE_TRY(model, learn::make_model(config.task.model, info.shape, info.target()));
  return std::pair(std::move(config), std::move(model));
}

std::filesystem::path models_of(const std::filesystem::path& data_directory, RunNumber run) {
  return chunks_of(data_directory, run) / "models";
}

std::filesystem::path asked_models_of(const std::filesystem::path& data_directory, RunNumber run) {
  return chunks_of(data_directory, run) / "asked";
}

Result<void> check_run(const run::RunConfig& config) {
  const auto bench = make_bench(config);
  return bench ? Result<void>() : config::at_key(*config.source, bench.error());
}

Result<RunParts> open_run(const std::filesystem::path& data_directory, const RunRecord& record,
                          std::size_t threads) {
  // A sampler is made while the engine is made, and an engine's steps are repeated.
  return config::failure_as_error([&]() -> Result<RunParts> {
    FEDGE_TRY(config, read_record(record));
    auto parts = open_parts(data_directory, record, config, threads);
    if (!parts) return config::at_key(*config.source, parts.error());
    return parts;
  });
}

HalfFiles halves_of(const std::filesystem::path& data_directory, RunNumber run) {
  return HalfFiles(chunks_of(data_directory, run) / "halves");
}

void remove_chunks(const std::filesystem::path& data_directory, RunNumber run) {
  std::error_code ignored;
  std::filesystem::remove_all(chunks_of(data_directory, run), ignored);
}

}  // namespace fedge::server
