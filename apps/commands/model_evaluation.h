// `fedge model evaluate`: a model's metrics on held-out data, with all ranks of its adapters and with only
// the first ranks.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::apps {

struct EvaluationOptions {
  std::string file;
  std::string dataset;             // empty: the one that the model was trained on
  std::string directory;           // the directory of `dataset`
  std::size_t test_windows = 0;    // text: held-out samples per group; 0: as in the model's file
  std::vector<std::size_t> ranks;  // numbers of ranks; empty: those that it was trained for
  std::size_t rouge = 0;           // held-out lines per group that the model must complete
  std::size_t threads = 1;
  bool json = false;
};

// Prints a line for each number of ranks as soon as it is evaluated. kInvalid names the option or the file.
Result<void> evaluate_model(const EvaluationOptions& options, std::FILE* out);

}  // namespace fedge::apps
