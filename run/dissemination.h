// DisseminationSpec: section [dissemination] of a run file: how models come to clients, and, in runs without
// a server, updates to each other. Values; any thread.
#pragma once

#include <cstddef>
#include <optional>

#include "core/config/reader.h"
#include "core/result.h"
#include "swarm/warmup/config.h"

namespace fedge::run {

struct DisseminationSpec {
  bool swarm = false;  // they exchange its chunks; otherwise each fetches it from the coordinator
  // And those of their updates, which never come to the coordinator: each aggregates them itself.
  bool serverless = false;
  double copies = 2;  // of a model, that the coordinator sends then, unless somebody gets none otherwise
  std::size_t neighbours = 20;  // that a client begins with
  // Of serverless runs: updates are exchanged so that nobody can tell whose is whose. How many clients a
  // round has, and chunks an update, is not known before (warmup_of).
  std::optional<swarm::WarmupConfig> warmup;
};

DisseminationSpec read_dissemination(config::Reader& root);

// The warm-up of a round with so many members and chunks in each update, in which at most half of the others
// are neighbours. kInvalid if it would never end, or cannot be carried out; begins with
// "dissemination.warmup".
Result<swarm::WarmupConfig> warmup_of(const swarm::WarmupConfig& rules, std::size_t members,
                                      std::size_t chunks);

}  // namespace fedge::run
