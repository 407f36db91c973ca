// Route: how the updates of a run become a model: sent to the coordinator (make_direct_route), sent there and
// joined with its own half (make_split_route), aggregated by the clients (make_serverless_route), or added
// under masks (make_secure_route). A conductor owns one route
// for the whole run. Pure: time comes from the host, results of ports come back through the functions below.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/messages.h"
#include "run/run_config.h"
#include "server/conductor/ports.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

// The conductor, as its route sees it.
class RouteHost {
 public:
  virtual ~RouteHost() = default;
  virtual Time now() const = 0;
  // Whether the inputs of an earlier process are being repeated: the route then follows that process, and
  // decides nothing.
  virtual bool retelling() const = 0;
  // Gives the engine this input once the current effects are carried out.
  virtual void submit(RunEngine::Input input) = 0;
  // Sends to a client. A CancelTask also ends the transfer of the task's model.
  virtual void say(ClientId client, const protocol::Message& message) = 0;
  virtual void report(const Event& event) = 0;
  // Ends a track phase, as Route::close() asked for, once the current effects are carried out.
  virtual void close(const RunEngine::CloseRound& turn, const Made& made) = 0;
};

// Whether a message is the route's.
enum class Heard {
  kOther,    // it is about something else
  kTaken,    // it was used, or came too late
  kUnasked,  // nobody asked for it
};

// A sum of masked updates.
struct MaskedSum {
  double train_loss = 0;
  std::vector<ClientId> bad_shares;  // members that sent invalid secret shares
};

class Route {
 public:
  virtual ~Route() = default;

  // --- effects of the engine ---
  virtual void begin(const RunEngine::BeginSecure&) {}
  // The client was sent this task, which starts from this model.
  virtual void assigned(const RunEngine::Assign&, const protocol::Manifest& /*model*/) {}
  virtual void fetch(const RunEngine::Fetch&) = 0;
  virtual void discard(ClientId, TaskId) = 0;
  virtual void fold(const RunEngine::Fold&) = 0;
  // Returns whether this accepting verdict waits until the phase's model is known.
  virtual bool keep(ClientId, const protocol::UpdateVerdict&) { return false; }
  // This message, from or to the client, may end its task.
  virtual void dismissed(ClientId, const protocol::Message&) {}
  // The client did not return after a restart of the coordinator.
  virtual void given_up(ClientId) {}
  // Answers by RouteHost::close(), at once or later. Also called for a phase in which nobody was selected.
  virtual void close(const RunEngine::CloseRound& turn) = 0;
  // The phase's model is durable. `aggregated`: it contains the accepted updates.
  virtual void committed(bool /*aggregated*/) {}

  // Whether a phase is between close() and RouteHost::close().
  virtual bool makes_model() const { return false; }

  // --- clients ---
  // Whether the client's update may arrive without it: the engine hears of its departure later, from the
  // route.
  virtual bool holds(ClientId) const { return false; }
  // The client disconnected; `held` is what holds() returned, unless it was revoked.
  virtual void left(ClientId, bool /*held*/) {}
  virtual void linked(ClientId) {}
  // The engine has heard of its arrival.
  virtual void arrived(ClientId) {}
  virtual Heard receive(ClientId, const protocol::Message&) { return Heard::kOther; }
  // Whether clients that have trained go on to exchange the task's model.
  virtual bool keeps_models() const { return false; }

  // --- results of ports, and time ---
  virtual void fetched(const protocol::ObjectId&, const Result<void>&) {}
  virtual void summed(const Result<MaskedSum>&) {}
  virtual void expired() {}
  virtual std::optional<Time> next_deadline() const { return std::nullopt; }

  // Ends what goes on at ports. Nothing else is called afterwards.
  virtual void stop() {}

  // --- after a restart ---
  // An earlier process gave the engine this input. Called before its effects.
  virtual void retell(const RunEngine::Input&) {}
  // All of them are repeated. No client is connected yet. Continues the phase in progress, if there is one.
  virtual void resume() {}
};

struct RouteParts {
  RouteHost& host;
  const Ports& ports;  // change when the conductor resumes
  const run::RunConfig& config;
};
std::unique_ptr<Route> make_direct_route(const RouteParts& parts);
std::unique_ptr<Route> make_split_route(const RouteParts& parts);
std::unique_ptr<Route> make_serverless_route(const RouteParts& parts);
std::unique_ptr<Route> make_secure_route(const RouteParts& parts);

}  // namespace fedge::server
