#include "server/coordinator/coordinator_parts.h"

#include <array>
#include <chrono>
#include <utility>

#include "core/crypto/random.h"
#include "server/access/calendar.h"
#include "server/data_directory.h"
#include "server/engine/make_engine.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxStoredPayload = std::size_t{64} << 30;

RunId random_id() {
  std::array<std::uint8_t, 8> bytes;
  fill_random(bytes);
  std::uint64_t id = 0;
  for (const std::uint8_t byte : bytes) id = (id << 8) | byte;
  return RunId(id);
}

// The run to be led: the one that has not ended yet, else this one.
Result<RunRecord> find_or_submit(RunStore& store, const RunConfig& config) {
  FEDGE_TRY(runs, store.runs());
  for (const RunRecord& run : runs) {
    if (has_ended(run.status)) continue;
    if (run.document == config.canonical) return run;
    return Error{ErrorCode::kRefused, "run " + std::to_string(run.number.value()) + " (" + run.name +
                                          ") has not ended, and its run file is another; go on with its own, "
                                          "or end it: fedge run stop " +
                                          std::to_string(run.number.value())};
  }
  const RunRecord submitted{.number = RunNumber(),
                            .id = random_id(),
                            .name = config.name,
                            .document = config.canonical,
                            .submitted = calendar_now()};
  FEDGE_TRY(number, store.submit(submitted));
  return store.run(number);
}

}  // namespace

Result<CoordinatorParts> open_coordinator(const CoordinatorOptions& options, const RunConfig& given) {
  FEDGE_TRY_VOID(make_directory(options.data_directory, 0700));
  FEDGE_TRY(lock, DirectoryLock::acquire(options.data_directory));
  FEDGE_TRY(key, open_coordinator_key(options.data_directory));
  FEDGE_TRY(test, learn::load_test(given.task.data));
  // Said here rather than by every client. A host may lack the training set; its clients do not.
  const auto possible = learn::check_partition(given.task.data, Rng(given.seed));
  if (!possible && possible.error().code != ErrorCode::kNotFound) return possible.error();
  FEDGE_TRY(model, learn::make_model(given.task.model, test->shape, test->classes));
  FEDGE_TRY(store, open_sqlite_store(run_store_path(options.data_directory)));
  FEDGE_TRY(record, find_or_submit(*store, given));
  FEDGE_TRY_VOID(store->set_status(record.number, RunStatus::kRunning, "", calendar_now()));
  RunConfig run = given;
  run.id = record.id;
  const auto chunks = options.data_directory / "chunks";
  const protocol::FileStoreOptions kept{.max_bytes = kMaxStoredPayload, .durable = true};
  FEDGE_TRY(models, protocol::open_file_chunk_store(chunks / "models", kept));
  FEDGE_TRY(updates, protocol::open_file_chunk_store(chunks / "updates", kept));
  auto removals = std::make_unique<DeferredRemovals>(std::move(models));
  auto threads = std::make_unique<ThreadPool>(options.threads);
  FEDGE_TRY(created, RunState::create(run, *model, *test, *removals, *threads));
  auto state = std::make_unique<RunState>(std::move(created));
  FEDGE_TRY(engine, make_engine(*state));
  FEDGE_TRY(recovered, Recovery({*store, record.number, *engine, *state, *updates}).run());
  removals->settle();
  updates->settle();
  return CoordinatorParts{.lock = std::move(lock),
                          .key = std::move(key),
                          .model = std::move(model),
                          .test = std::move(test),
                          .store = std::move(store),
                          .run = record.number,
                          .models = std::move(removals),
                          .updates = std::move(updates),
                          .threads = std::move(threads),
                          .state = std::move(state),
                          .engine = std::move(engine),
                          .recovered = std::move(recovered)};
}

}  // namespace fedge::server
