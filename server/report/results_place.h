// Where a run's results go, so that a run never overwrites those of another one unasked.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/result.h"

namespace fedge::server {

// Whether a run's metrics, model or report lie in this directory.
bool holds_results(const std::filesystem::path& directory);

struct ResultsChoice {
  std::optional<std::string> out = {};  // as the user wants it
  bool force = false;                   // overwrite what is there
  // The run file of a run that has begun and is gone on with: its own results may be there.
  std::optional<std::string> going_on = {};
};
inline constexpr const char* kDefaultResults = "fedge-out";

// The directory that the user names; kRefused if it holds results of another run, unless they may be
// overwritten. If none is named, the first of fedge-out, fedge-out-2, fedge-out-3, ... without results, or
// the one with those of the run that is gone on with.
Result<std::filesystem::path> choose_results(const ResultsChoice& choice);

// kRefused if there is a file at `path`, unless it may be overwritten.
Result<void> check_new_file(const std::filesystem::path& path, bool force);

}  // namespace fedge::server
