// Watch: what follows a run without taking part in it, such as the timeline that an operator sees. The
// conductor calls it on its own thread; a watch decides nothing.
#pragma once

#include <string>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

class Watch {
 public:
  virtual ~Watch() = default;
  // The client connected and was sent the description of the run; its answer is awaited.
  virtual void linked(ClientId client, Time now) = 0;
  // It takes no part, for this reason.
  virtual void declined(ClientId client, const std::string& reason, Time now) = 0;
  virtual void left(ClientId client, Time now) = 0;
  // The engine decided this about the input. Called when the decision is carried out, and also while an
  // earlier process' inputs are repeated.
  virtual void decided(const RunEngine::Input& input, const std::vector<RunEngine::Effect>& effects,
                       Time now) = 0;
};

}  // namespace fedge::server
