// `fedge aggregate`: any aggregator, offline, on .safetensors files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::apps {

struct AggregateOptions {
  std::string strategy;                  // a recipe or an aggregator by name
  std::vector<std::string> assignments;  // "trim=2", or "server_optimizer.learning_rate=0.5"
  std::vector<std::uint64_t> weights;    // of each file; empty = its metadata num_examples, else 1
  std::string out;
  bool force = false;  // overwrite it
  std::string global;  // the model that the files were trained from; empty = zeros
  std::size_t threads = 1;
  std::vector<std::string> files;
};

// Writes `out`; the result is a line for the user.
Result<std::string> aggregate(const AggregateOptions& options);

}  // namespace fedge::apps
