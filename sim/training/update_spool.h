// UpdateSpool: file storage for a simulation's updates if many of them wait and memory is too small:
// the coordinator's file-backed chunk store in a separate directory. An update's file is freed or reused when
// the rule releases the update at the end of its round. Destruction removes the directory; files of a killed
// simulation are removed at the next open().
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
  // True if updates should be spooled: all updates of a round may wait at the same time, and they may exceed
  // kMaxInMemory. They wait if the rule keeps them until the round ends, or if they are not computed
  // `on_arrival` (computes_on_arrival()).
  static bool needed(const run::RunConfig& config, std::size_t parameters, bool on_arrival);
  static constexpr std::size_t kMaxInMemory = std::size_t{64} << 20;  // bytes

  // Creates the directory; its parent must exist. kUnavailable if another process uses it. Raises this
  // process's limit of open files, because each waiting update is one open file.
  static Result<UpdateSpool> open(const std::filesystem::path& directory);
  ~UpdateSpool();
  UpdateSpool(UpdateSpool&&) noexcept = default;
  UpdateSpool& operator=(UpdateSpool&&) = delete;

  // All objects in it must be destroyed before the spool.
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
