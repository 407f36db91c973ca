// Choice of a run's results directory, so that a run never overwrites another run's results unless the user
// asks for it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/result.h"

namespace fedge::server {

// Returns whether the directory contains a run's metrics, model or report.
bool holds_results(const std::filesystem::path& directory);

struct ResultsChoice {
  std::optional<std::string> out = {};  // directory given by the user
  bool force = false;                   // overwrite existing results
  // Run file of a run that is being continued: its earlier results may be in the directory.
  std::optional<std::string> going_on = {};
};
inline constexpr const char* kDefaultResults = "fedge-out";

// Returns the user's directory; kRefused if it holds another run's results and `force` is not set. Without
// a user's choice, returns the directory with the continued run's results, else the first of fedge-out,
// fedge-out-2, fedge-out-3, ... without results.
Result<std::filesystem::path> choose_results(const ResultsChoice& choice);

// Removes the results of an earlier run, so that no file of it remains beside those of the next one. Keeps
// the file `base` (may be empty), which the next run reads.
Result<void> remove_results(const std::filesystem::path& directory, const std::filesystem::path& base);

// Returns kRefused if `path` is an existing file and `force` is not set.
Result<void> check_new_file(const std::filesystem::path& path, bool force);

}  // namespace fedge::server
