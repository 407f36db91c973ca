// LoadedModel: the vectors of a task in memory, read from the client's files. Frozen matrices may be in fewer
// bits (model.base_dtype), and in a file that the clients of one user share (run --share-base).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>

#include "client/task_files.h"
#include "core/parameters.h"
#include "core/result.h"
#include "learn/models/compact_weights.h"

namespace fedge::client {

struct LoadedModel {
  ParameterVector model;
  // The matrices that are not trained; nothing: `model` has them.
  std::optional<learn::CompactWeights> base = {};
  std::optional<ParameterVector> control = {};
  std::optional<Error> unshared = {};  // why the matrices are not in the shared directory, if they should be
};

// Says how a client keeps the matrices of a run that are not trained.
struct BaseKeeping {
  learn::BaseDtype dtype = learn::BaseDtype::kFloat32;
  std::filesystem::path shared = {};  // directory of the shared files; empty: in memory of its own
};

// Blocks on the disk and, for at most a minute or until `stop`, while another client writes to the shared
// directory. A shared file is compared with the client's own chunks, which are checked against their hashes;
// if it differs, a new one takes its place. For the worker thread, like all of TaskFiles. Errors are those of
// TaskFiles::load().
Result<std::shared_ptr<const LoadedModel>> load_model(const std::shared_ptr<const ParameterLayout>& layout,
                                                      const BaseKeeping& keeping, TaskFiles& files,
                                                      const TaskFiles::Download& download,
                                                      const std::stop_token& stop = {});

// Makes the directory ready for use, and creates it if it is absent. kRefused unless it belongs to this user
// and no other user can write to it.
Result<void> prepare_shared_bases(const std::filesystem::path& directory);

}  // namespace fedge::client
