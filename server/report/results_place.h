// Choice of a run's results directory, so that a run never overwrites another run's results unless the user
// asks for it, and never writes into a directory into which another process writes.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/result.h"

namespace fedge::server {

// Returns whether the directory contains a run's metrics, model or report.
bool holds_results(const std::filesystem::path& directory);

// Exclusive use of a results directory until destruction or the end of the process: a lock on its
// metrics.jsonl. On a file system without locks, a claim always succeeds.
class ResultsClaim {
 public:
  // Creates the directory and its metrics.jsonl if they do not exist. kUnavailable if another process holds
  // the claim.
  static Result<ResultsClaim> take(const std::filesystem::path& directory);
  const std::filesystem::path& directory() const { return directory_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  ResultsClaim(std::filesystem::path directory, File file)
      : directory_(std::move(directory)), file_(std::move(file)) {}

  std::filesystem::path directory_;
  File file_;
};

struct ResultsChoice {
  std::optional<std::string> out = {};  // directory given by the user
  bool force = false;                   // overwrite existing results
  // Run file of a run that is being continued: its earlier results may be in the directory.
  std::optional<std::string> going_on = {};
};
inline constexpr const char* kDefaultResults = "fedge-out";

// Claims the user's directory; kRefused if it holds another run's results and `force` is not set. Without a
// user's choice, claims the directory with the continued run's results, else the first of fedge-out,
// fedge-out-2, fedge-out-3, ... without results and without another process's claim. kUnavailable if another
// process has claimed the directory.
Result<ResultsClaim> choose_results(const ResultsChoice& choice);

// Removes the results of an earlier run, so that no file of it remains beside those of the next one, and
// empties metrics.jsonl, which a claim locks. Keeps the file `base` (may be empty), which the next run reads.
Result<void> remove_results(const std::filesystem::path& directory, const std::filesystem::path& base);

// Returns kRefused if `path` is an existing file and `force` is not set.
Result<void> check_new_file(const std::filesystem::path& path, bool force);

}  // namespace fedge::server
