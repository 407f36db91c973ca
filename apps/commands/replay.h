// `fedge-sim replay`: repeats a coordinator's run from its journal and compares the models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::apps {

struct ReplayCommand {
  std::string directory;               // a coordinator's data directory
  std::optional<std::int64_t> run;     // its number; nothing: the last run
  std::vector<std::string> data;       // --data
  std::optional<std::uint64_t> until;  // last round to replay; nothing: as far as the journal goes
  std::size_t threads = 1;
  bool json = false;
};

// Prints a line for each round as it ends, then the result. JSON: one object,
//   {"run":1,"rounds":[{"round":1,"recorded":"..","replayed":"..","accuracy":0.9,"equal":true,
//    "tracks":[{"recorded":"..","replayed":".."}]}],"updates":20,"finished":true,"difference":null}
// `recorded` and `equal` are null for a round that is not recorded yet. Returns an error, or kRefused if
// the models differ.
Result<void> replay(const ReplayCommand& command, std::FILE* out);

}  // namespace fedge::apps
