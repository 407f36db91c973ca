// DisseminationSpec: section [dissemination] of a run file: how models reach clients and, in serverless runs,
// how updates reach other clients. Plain values; any thread.
#pragma once

#include <cstddef>
#include <optional>

#include "core/config/reader.h"
#include "core/result.h"
#include "swarm/warmup/config.h"

namespace fedge::run {

struct DisseminationSpec {
  bool swarm = false;  // clients exchange the model's chunks; false: each downloads it from the coordinator
  // Clients exchange the updates' chunks too, without the coordinator; each client aggregates them itself.
  bool serverless = false;
  double copies = 2;  // of a model, sent by the coordinator; more only to clients without another source
  std::size_t neighbours = 20;  // number with which a client starts to exchange chunks
  // Serverless runs: hides which update belongs to which client. The number of members and of chunks an
  // update is set for each round (warmup_of).
  std::optional<swarm::WarmupConfig> warmup;
};

DisseminationSpec read_dissemination(config::Reader& root);

// The warm-up of a round with this number of members and of chunks in each update; at most half of the others
// become neighbours. kInvalid if it could not finish or cannot be executed; the message begins with
// "dissemination.warmup".
Result<swarm::WarmupConfig> warmup_of(const swarm::WarmupConfig& rules, std::size_t members,
                                      std::size_t chunks);

}  // namespace fedge::run
