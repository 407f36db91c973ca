// Concrete mode: the same run file over real sockets. Starts the real coordinator and real client
// programs as processes on loopback, waits for the run's end, and leaves no process behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace fedge::sim {

struct ConcreteOptions {
  std::filesystem::path programs;        // directory with fedge-client and fedge
  std::vector<std::string> coordinator;  // the command that starts the coordinator, without its options
  std::filesystem::path run_file;
  std::vector<std::string> assignments;  // --set
  std::filesystem::path out;             // the coordinator writes its results here
  std::filesystem::path scratch;         // keys, enrolment, chunks; the caller removes it
  std::vector<double> capabilities;      // a client for each: what it says it can train
  std::string data_directory;            // all clients' --data-directory; empty: none
  // Coordinator and clients take part in a directory, of which one node more is the first, and clients find
  // the coordinator there alone.
  bool in_directory = false;
  bool exchanging = false;  // clients exchange chunks, and accept links from each other
  // Everybody's noise is the simulation's of this seed, so that the model is that of the same run there.
  std::optional<std::uint64_t> noise_seed;
  std::size_t threads = 1;  // of the coordinator
  std::string log_level = "warning";
  std::function<bool()> interrupted;  // may be empty
};

// What the coordinator's process took from its start to its end.
struct CoordinatorUsage {
  Bytes peak_memory;  // resident
  double processor_seconds = 0;
};

// kUnavailable if interrupted; otherwise the first process that failed is named.
Result<CoordinatorUsage> run_concrete(const ConcreteOptions& options);

}  // namespace fedge::sim
