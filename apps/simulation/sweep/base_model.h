// The model with which all runs of a sweep begin, pretrained once in the sweep's directory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/simulation/sweep/sweep_file.h"
#include "core/result.h"

namespace fedge::apps {

struct BaseModelOptions {
  std::filesystem::path program;  // fedge-sim
  std::filesystem::path directory;
  std::vector<std::string> data;
  std::size_t threads = 1;
  bool force = false;  // replace a model that was pretrained otherwise
  std::function<bool()> interrupted;
};

// Whether a sweep's directory has this base model. The error is the run file's.
Result<bool> has_base(const Pretraining& pretraining, const std::filesystem::path& directory);
// Pretrains DIRECTORY/base.safetensors, unless the directory has it from the same run file and labels;
// returns its path. kRefused: the directory has it from others, and `force` is not set.
Result<std::filesystem::path> pretrain_base(const Pretraining& pretraining, const BaseModelOptions& options);

}  // namespace fedge::apps
