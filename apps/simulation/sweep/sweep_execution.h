// Executes a sweep: pretrains its base model, tunes, runs every combination with all seeds, and writes the
// tables.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/platform/thread_pool.h"
#include "core/result.h"

namespace fedge::apps {

struct SweepOptions {
  std::string file;                // a sweep file or a run file
  std::vector<std::string> grids;  // --grid
  std::size_t seeds = 0;           // 0: as the file says, or else 1
  std::size_t jobs = 1;
  std::string out = "fedge-sweep";
  bool force = false;
  bool check = false;
  std::vector<std::string> columns;
  std::string baseline;
  std::vector<std::string> assignments;
  std::vector<std::string> data;
  std::vector<std::string> further;  // options of `fedge-sim run`, after --
  std::size_t threads = available_processors();
};

// Prints the tables as the runs end. An interrupted sweep is an error; the same options continue it.
Result<void> execute_sweep(const SweepOptions& options);

}  // namespace fedge::apps
