// TaskConductor: carries out the decisions of one client. It owns the client's engine and, in runs that need
// them, its secure sessions and its serverless rounds. It gives them their inputs in order and calls the
// device's ports (ports.h). The daemon and the simulator run the same conductor: what waits, writes, sends or
// computes is a port. A port may answer within its call: the answer waits until the current input is carried
// out. One thread. Memory: 48 bytes more than the engine, and sessions and rounds where a run has them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/client_engine.h"
#include "client/conductor/ports.h"
#include "client/secure/sessions.h"
#include "client/serverless/serverless_rounds.h"
#include "core/node.h"

namespace fedge::client {

class TaskConductor {
 public:
  struct Context {
    Time now;
    const Rng& rng;  // this client's own stream
    const Ports& ports;
  };
  // --- inputs, besides those of the engine ---
  // A run is prepared whose updates are masked (not null), or whose clients aggregate the model.
  struct Prepared {
    std::string name;
    std::shared_ptr<const MaskedRun> masked;
    bool serverless = false;
    ClientEngine::RunPrepared run;
  };
  // The update of a masked run is trained; `update` is SummedUpdates::update_of() its values.
  struct TrainedUnmasked {
    RunId run;
    TaskId task;
    Digest update;
  };
  struct KnownClientsWritten {
    std::size_t clients = 0;
    Result<void> written;
  };
  struct SumWritten {
    protocol::SecureSession session;
    Result<void> written;
  };
  // The device lost power. What is in memory is lost: training in progress, and the secrets of sessions.
  struct PowerCut {};
  using Input = std::variant<ClientEngine::Input, Prepared, TrainedUnmasked, KnownClientsWritten, SumWritten,
                             RoundStep, PowerCut>;

  // `traced`: as of ClientEngine.
  explicit TaskConductor(ClientId self, BackoffRules backoff = {}, bool traced = false)
      : engine_(backoff, traced), self_(self) {}

  // Carries out the input, and all that follow from it.
  void step(Input input, const Context& context);
  std::optional<Time> next_deadline() const { return engine_.next_deadline(); }
  const ClientEngine& engine() const { return engine_; }

 private:
  // Inputs that follow from an input are given to the engine before the next one.
  using Later = std::vector<ClientEngine::Input>;
  void on(const ClientEngine::Input& input, const Context& context, Later& later);
  void on(const Prepared& prepared, const Context& context, Later& later);
  void on(const TrainedUnmasked& trained, const Context& context, Later& later);
  void on(const KnownClientsWritten& known, const Context& context, Later& later);
  void on(const SumWritten& sum, const Context& context, Later& later);
  void on(const RoundStep& step, const Context& context, Later& later);
  void on(const PowerCut&, const Context& context, Later& later);
  void step_engine(const ClientEngine::Input& input, const Context& context, Later& later);
  void carry_out(const ClientEngine::Effect& effect, const Context& context);
  Sessions::Context session_context(const Context& context, Later& later) const {
    return {engine_, context.ports, later};
  }
  ServerlessRounds::Context round_context(const Context& context) const { return {engine_, context.ports}; }

  ClientEngine engine_;
  ClientId self_;
  bool busy_ = false;
  std::unique_ptr<Sessions> sessions_;        // null: no run of this client masks its updates
  std::unique_ptr<ServerlessRounds> rounds_;  // null: no run of this client is serverless
  std::vector<Input> waiting_;                // given while another input was carried out
};

}  // namespace fedge::client
