// `fedge tracks resolve`: shows which models a policy makes its clients train in parallel in a round, and
// who uses and who trains each.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "core/result.h"

namespace fedge::apps {

struct TracksOptions {
  std::string policy;  // a policy file, or a run file with a section [tracks]
  std::uint32_t round = 1;
  bool json = false;
  bool strict = false;  // resolve strictly, whatever the policy says
};

// Writes track by track, so that memory does not grow with the lists of members. JSON: one line,
//   {"round":3,"load":11,"tracks":[{"exclude":["1"],"members":["0"],"owners":["0"]}],"withdrawn":[]}
// with clients by name; lists are sorted by name, tracks by their `exclude` list.
Result<void> resolve_tracks(const TracksOptions& options, std::FILE* out);

}  // namespace fedge::apps
