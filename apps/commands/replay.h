// `fedge-sim replay`: carries a coordinator's run out again from its journal and compares the models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "core/result.h"

namespace fedge::apps {

struct ReplayCommand {
  std::string directory;               // a coordinator's data directory
  std::optional<std::int64_t> run;     // its number; the last one
  std::optional<std::uint64_t> until;  // the last round to be replayed; as far as the journal goes
  std::size_t threads = 1;
  bool json = false;
};

// Writes a line a round as it goes, then what came out. JSON: one object,
//   {"run":1,"rounds":[{"round":1,"recorded":"..","replayed":"..","accuracy":0.9,"equal":true,
//    "tracks":[{"recorded":"..","replayed":".."}]}],"updates":20,"finished":true,"difference":null}
// where a round that is not recorded yet has null for `recorded` and `equal`. An error or a difference is
// returned: kRefused for a difference.
Result<void> replay(const ReplayCommand& command, std::FILE* out);

}  // namespace fedge::apps
