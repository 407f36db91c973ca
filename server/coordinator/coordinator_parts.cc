#include "server/coordinator/coordinator_parts.h"

#include <utility>

#include "server/data_directory.h"
#include "server/engine/make_engine.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxStoredPayload = std::size_t{64} << 30;

}  // namespace

Result<CoordinatorParts> open_coordinator(const CoordinatorOptions& options, const RunConfig& run) {
  FEDGE_TRY_VOID(make_directory(options.data_directory, 0700));
  FEDGE_TRY(lock, DirectoryLock::acquire(options.data_directory));
  FEDGE_TRY(key, open_coordinator_key(options.data_directory));
  FEDGE_TRY(test, learn::load_test(run.task.data));
  // Said here rather than by every client. A host may lack the training set; its clients do not.
  const auto possible = learn::check_partition(run.task.data, Rng(run.seed));
  if (!possible && possible.error().code != ErrorCode::kNotFound) return possible.error();
  FEDGE_TRY(model, learn::make_model(run.task.model, test->shape, test->classes));
  const auto chunks = options.data_directory / "chunks";
  FEDGE_TRY(models, protocol::open_file_chunk_store(chunks / "models",
                                                    {.max_bytes = kMaxStoredPayload, .durable = true}));
  FEDGE_TRY(updates, protocol::open_file_chunk_store(chunks / "updates",
                                                     {.max_bytes = kMaxStoredPayload, .durable = true}));
  auto threads = std::make_unique<ThreadPool>(options.threads);
  FEDGE_TRY(created, RunState::create(run, *model, *test, *models, *threads));
  auto state = std::make_unique<RunState>(std::move(created));
  FEDGE_TRY(engine, make_engine(*state));
  return CoordinatorParts{.lock = std::move(lock),
                          .key = std::move(key),
                          .model = std::move(model),
                          .test = std::move(test),
                          .models = std::move(models),
                          .updates = std::move(updates),
                          .threads = std::move(threads),
                          .state = std::move(state),
                          .engine = std::move(engine)};
}

}  // namespace fedge::server
