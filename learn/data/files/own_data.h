// Own data (data.partition.kind = "own"): every client has the samples of a file or directory of its own. On
// a device, that is the path which its owner gives. In a simulation, one path has the data of all clients:
// a directory with a file or directory for each client, in the order of their names; or a directory with
// clients.csv, which says who has which samples of the data beside it:
//
//   sample_id,client_id,split
//   0,ward-3,train
//   1,ward-7,test
//
// sample_id counts the samples from 0; split is train, validation or test. The clients are numbered in the
// order of their ids, which are compared as numbers if all are numbers.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "learn/data/dataset.h"
#include "learn/data/partition.h"
#include "learn/spec.h"

namespace fedge::learn {

// Evaluation: on the validation samples if data.validation is above 0 or clients.csv has any, else on the
// test samples.
enum class Purpose { kTraining, kEvaluation };

// The samples of one device, at spec.directory. There may be none for evaluation. `rng` is the run's root
// stream.
Result<Dataset> load_own(const DataSpec& spec, Purpose purpose, std::size_t client, const Rng& rng);

// The samples of all clients of a simulation, at spec.directory: bit for bit those that a device with the
// client's file would load. kInvalid, naming data.partition.clients, if there are more or fewer clients.
// Every error names the file.
struct OwnedSamples {
  Dataset data;
  Partition partition;
};
Result<OwnedSamples> load_all_own(const DataSpec& spec, Purpose purpose, const Rng& rng);

// The path of each client's data, for a simulation with real daemons. kUnsupported for clients.csv.
Result<std::vector<std::filesystem::path>> client_paths(const DataSpec& spec);

}  // namespace fedge::learn
