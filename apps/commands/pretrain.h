// `fedge-sim pretrain`: trains the run file's model on all of its data centrally, prints the progress, and
// writes the model as a base for runs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "run/run_config.h"

namespace fedge::apps {

struct PretrainCommand {
  std::string out = "base.safetensors";
  std::vector<std::uint32_t> labels;  // train on these labels only; empty: all
  std::size_t threads = 1;            // for the evaluation
  std::function<bool()> interrupted;
};

Result<void> pretrain(const run::RunConfig& config, const PretrainCommand& command, std::FILE* out);

}  // namespace fedge::apps
