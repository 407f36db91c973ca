// Concrete mode: the same run file over real sockets. Starts the real coordinator and client programs as
// processes on loopback, waits for the end of the run, and leaves no process behind.
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
  std::vector<std::string> assignments;  // assignments of --set
  std::filesystem::path out;             // results of the coordinator; claimed by the caller
  std::filesystem::path scratch;         // keys, enrolment, chunks; the caller removes it
  std::vector<double> capabilities;      // one client for each: its declared capability
  std::string data_directory;            // all clients' --data-directory; empty: none
  // Coordinator and clients take part in a directory, whose first node is an additional process. Clients find
  // the coordinator only through the directory.
  bool in_directory = false;
  bool exchanging = false;  // clients exchange chunks, and accept links from each other
  // Seed of all noise. With it, the model equals that of the same run in the simulator.
  std::optional<std::uint64_t> noise_seed;
  std::size_t threads = 1;  // of the coordinator
  std::string log_level = "warning";
  std::function<bool()> interrupted;  // may be empty
};

// Resources used by the coordinator's process from start to end.
struct CoordinatorUsage {
  Bytes peak_memory;  // resident
  double processor_seconds = 0;
};

// Checks that this directory has the programs that run_concrete() starts: fedge-client and, for a run with a
// directory, fedge. The error names the missing file.
Result<void> check_programs(const std::filesystem::path& programs, bool in_directory);

// Returns kUnavailable if interrupted or if a process failed; the error names the first one.
Result<CoordinatorUsage> run_concrete(const ConcreteOptions& options);

}  // namespace fedge::sim
