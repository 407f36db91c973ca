// Watch: what follows a run without taking part in it, such as the timeline that an operator sees. The
// conductor calls it on its own thread; a watch decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

// A secure sum of a track phase.
struct SecureStage {
  TaskId task;
  std::uint32_t attempt = 0;
  std::string stage;              // as privacy::SecureServer::Progress names it
  std::vector<ClientId> awaited;  // connected members whose next message is awaited, ascending
  bool operator==(const SecureStage&) const = default;
};

class Watch {
 public:
  virtual ~Watch() = default;
  // The client connected and was sent the description of the run; its answer is awaited.
  virtual void linked(ClientId client, Time now) = 0;
  // It takes no part, for this reason.
  virtual void declined(ClientId client, const std::string& reason, Time now) = 0;
  virtual void left(ClientId client, Time now) = 0;
  // A secure sum has come to this stage, or awaits other members.
  virtual void secure(const SecureStage& /*stage*/, Time /*now*/) {}
  // The engine decided this about the input. Called when the decision is carried out, and also while an
  // earlier process' inputs are repeated.
  virtual void decided(const RunEngine::Input& input, const std::vector<RunEngine::Effect>& effects,
                       Time now) = 0;
};

}  // namespace fedge::server
