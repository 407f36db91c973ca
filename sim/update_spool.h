// UpdateSpool: where a simulation's updates wait for a rule that reads them back, when memory is no place
// for all of them: the coordinator's file-backed chunk store, in a directory of its own. An update's file is
// freed, or written over by the next update, when the rule lets go of it at the end of its round. The
// directory goes away with this object; what a killed simulation left in it goes when it is opened again.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/platform/files.h"
#include "core/result.h"
#include "protocol/chunks/chunk_store.h"
#include "run/run_config.h"

namespace fedge::sim {

class UpdateSpool {
 public:
  // Whether updates belong there: a rule keeps them all until the round ends, and those of one round may
  // take more than kMaxInMemory.
  static bool needed(const run::RunConfig& config, std::size_t parameters);
  static constexpr std::size_t kMaxInMemory = std::size_t{64} << 20;  // bytes

  // Makes the directory, below one that is there. kUnavailable if another process uses it. One file a
  // waiting update is open: raises this process's limit of open files as far as it may.
  static Result<UpdateSpool> open(const std::filesystem::path& directory);
  ~UpdateSpool();
  UpdateSpool(UpdateSpool&&) noexcept = default;
  UpdateSpool& operator=(UpdateSpool&&) = delete;

  // Objects in it must be gone before the spool is.
  protocol::ChunkStore& store() { return *store_; }

 private:
  UpdateSpool(std::filesystem::path directory, DirectoryLock lock,
              std::unique_ptr<protocol::ChunkStore> store)
      : directory_(std::move(directory)), lock_(std::move(lock)), store_(std::move(store)) {}

  std::filesystem::path directory_;
  std::optional<DirectoryLock> lock_;
  std::unique_ptr<protocol::ChunkStore> store_;  // null once moved from
};

}  // namespace fedge::sim
