// Concrete mode: the same run file over real sockets. Starts a coordinator and clients as processes on
// loopback, waits for the end of the run, and leaves no process behind. All are the same program, so that
// they have the parts that it registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/energy/power.h"
#include "core/ids.h"
#include "core/result.h"
#include "sim/clients/client_labels.h"

namespace fedge::sim {

struct ConcreteOptions {
  // Its commands `coordinator` and `client` are the daemons. With in_directory, its directory contains fedge.
  std::filesystem::path program;
  std::filesystem::path run_file;
  std::vector<std::string> assignments;  // assignments of --set
  std::filesystem::path out;             // results of the coordinator; claimed by the caller
  std::filesystem::path scratch;         // keys, enrolment, chunks; the caller removes it
  std::vector<double> capabilities;      // one client for each: its declared capability
  ClientLabels labels;                   // that the clients get with their join tokens
  // Each client's description of the energy of its work; empty: none has one.
  std::vector<std::shared_ptr<const DevicePower>> powers;
  std::vector<std::string> data;  // each client's --data; empty: none has one
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

// Checks that fedge, which is the first node of a run's directory, is beside this program. The error names
// the missing file.
Result<void> check_directory_program(const std::filesystem::path& program);

// Returns kUnavailable if interrupted or if a process failed; the error names the first one.
Result<CoordinatorUsage> run_concrete(const ConcreteOptions& options);

}  // namespace fedge::sim
