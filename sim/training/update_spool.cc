#include "sim/training/update_spool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>

namespace fedge::sim {

bool UpdateSpool::needed(const run::RunConfig& config, std::size_t parameters, bool on_arrival) {
  if (on_arrival && !config.strategy.traits.keeps_individuals) return false;
  // All active clients may finish training before the first update is folded.
  double updates =
      std::ceil(static_cast<double>(config.sampling.clients_per_round) * config.sampling.over_selection);
  updates = std::min(updates, static_cast<double>(config.task.data.partition.clients));
  if (config.strategy.schedule.buffered) updates += static_cast<double>(config.strategy.schedule.buffer_size);
  return updates * static_cast<double>(parameters) * sizeof(float) > static_cast<double>(kMaxInMemory);
}

Result<UpdateSpool> UpdateSpool::open(const std::filesystem::path& directory) {
  FEDGE_TRY_VOID(make_directory(directory, 0700));
  FEDGE_TRY(lock, DirectoryLock::acquire(directory));
  // No other bound than the disk.
  FEDGE_TRY(store, protocol::open_file_chunk_store(directory,
                                                   {.max_bytes = std::numeric_limits<std::size_t>::max()}));
  raise_open_files_limit();
  return UpdateSpool(directory, std::move(lock), std::move(store));
}

UpdateSpool::~UpdateSpool() {
  if (!store_) return;
  store_.reset();  // removes the files
  lock_.reset();
  std::error_code ignored;
  std::filesystem::remove(directory_ / "lock", ignored);
  std::filesystem::remove(directory_, ignored);
}

}  // namespace fedge::sim
