// Conductor: carries out the decisions of a run's engine, the same in the coordinator and in the simulator.
// It gives the engine its inputs in order, waits until they are durable, and passes the effects to the run's
// route and to the ports. What decides lives here or below; what waits, writes or sends lives in a port.
// Pure: the caller passes the time, which never goes back. Use it on one thread. Cost: a few virtual calls
// for each effect.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "core/time.h"
#include "run/run_config.h"
#include "server/conductor/ports.h"
#include "server/conductor/route.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

// Returns the maximum weight of a client in samples, whatever it claims: the run file's limit, else the
// client's part of the data if known (`held`), else no limit. At least 1.
SampleCount counted_at_most(const run::RunConfig& config, std::optional<std::uint64_t> held);

// What the engine decided about one input. Only the conductor can act on it.
class Decision {
 public:
  Decision(Decision&&) = default;
  Decision& operator=(Decision&&) = default;
  const RunEngine::Input& input() const { return input_; }
  // Whether it closes a track phase.
  bool closes_phase() const;

 private:
  friend class Conductor;
  Decision() = default;
  RunEngine::Input input_;
  std::vector<RunEngine::Effect> effects_;
};

class Conductor final : private RouteHost {
 public:
  struct Setup {
    const run::RunConfig& config;
    Digest layout{};  // hash of the model's layout
    // Returns the samples in this client's part of the data; nothing if they are unknown.
    std::function<std::optional<std::uint64_t>(ClientId)> samples_of;
    // The aggregate folds all updates itself, whatever the run's route.
    bool folds_all = false;
  };
  // The ports and `config` must outlive the conductor, or the ports its take_over().
  Conductor(Setup setup, std::unique_ptr<RunEngine> engine, const Ports& ports);

  // --- what happens to clients ---
  // A client connected: it receives the description of the run, if the run is for it (sampling.where).
  void linked(ClientId client, Time now);
  // The labels of a connected client may have changed: the run may be for it now, or no longer. Returns
  // whether the client was sent the description of the run.
  bool relabelled(ClientId client, Time now);
  // It disconnected; `for_good`: its key was revoked.
  void left(ClientId client, bool for_good, Time now);
  // Returns kUnasked if nobody asked for this message.
  Heard received(ClientId client, const protocol::Message& message, Time now);

  // --- answers of ports ---
  // The update is stored, and its hashes and values have been checked; or why it cannot be used. `reported`:
  // as in RunEngine::Stored.
  void uploaded(ClientId client, TaskId task, const Result<void>& outcome, Time now,
                const std::optional<protocol::UpdateOffer>& reported = {});
  void fetched(const protocol::ObjectId& model, const Result<void>& outcome, Time now);
  void summed(const Result<MaskedSum>& sum, Time now);
  // The phase's model exists; `not_made`: why it does not contain the accepted updates.
  void aggregated(const RunEngine::CloseRound& turn, const std::optional<Error>& not_made, Time now);
  // The phase's model is durable. `aggregated`: it contains the accepted updates. `ends`: the evaluation of
  // the round ends the run.
  void closed(const RunEngine::CloseRound& turn, bool aggregated, bool ends, Time now);

  // --- other inputs ---
  // Described, PolicyChanged, Stop, Restarted, or a Committed of an earlier process.
  void submit(const RunEngine::Input& input, Time now);
  void expired(Time now);
  std::optional<Time> next_deadline() const;

  // --- after a restart, before anything else ---
  // Repeats an input of an earlier process, and its effects. What the route decides is dropped: the journal
  // has it. kInvalid: the sampler has failed. The ports keep their own errors.
  Result<void> retell(const RunEngine::Input& input, Time now);
  // From now on the conductor decides, with these ports.
  void take_over(const Ports& ports);
  // Continues what the earlier process had begun.
  void resume(Time now);
  // Call it from Gate::enter(), or later when the decision's input and all former ones are durable.
  void carry_out(const Decision& decision, Time now);
  // Nothing is carried out any more.
  void stop();
  // Whether a phase's model is being made by clients, or its sum is being unmasked.
  bool makes_model() const { return route_->makes_model(); }
  // Why the run cannot adopt this policy; nothing if it can.
  std::optional<Error> objection(const aggregation::Policy& policy) const;
  // Why clients cannot disagree in this run any more; nothing if they can.
  std::optional<Error> beyond_policies() const;
  // Whether the run is not for this connected client (sampling.where).
  bool excludes(ClientId client) const { return excluded_.contains(client); }

  const RunEngine& engine() const { return *engine_; }

 private:
  Time now() const override { return now_; }
  bool retelling() const override { return retelling_; }
  void submit(RunEngine::Input input) override {
    if (!retelling_) inputs_.push_back(std::move(input));
  }
  void say(ClientId client, const protocol::Message& message) override;
  void report(const Event& event) override { ports_.owner->report(event); }
  void close(const RunEngine::CloseRound& turn, const Made& made) override;

  // Gives the engine its inputs, unless effects are being carried out: what they cause comes after them. Ends
  // the run once no model is being made, so that its models are those of a closed phase.
  void pump();
  void note(const RunEngine::Input& input);
  void fail(const Error& error);
  void perform(const RunEngine::Effect& effect);
  void assign(const RunEngine::Assign& work);
  void send(ClientId client, const protocol::Message& message);
  void answered(ClientId client, const protocol::RunAnswer& answer);
  void decline(ClientId client, const std::string& reason);
  // Whether the run is for this client.
  bool is_for(ClientId client) const;
  // Tells whoever watches that the run is not for the client. The client itself does not learn of the run.
  void exclude(ClientId client);
  // The number of client numbers that can take part from now on.
  std::size_t numbers() const;
  void heard(ClientId client, const protocol::UpdateOffer& offer);
  void heard(ClientId client, const protocol::TaskFailed& failed);

  Setup setup_;
  std::unique_ptr<RunEngine> engine_;
  Ports ports_;
  Rng rng_;
  std::unique_ptr<Route> route_;
  std::deque<RunEngine::Input> inputs_;
  std::vector<std::pair<RunEngine::CloseRound, Made>> ended_;  // phases to close after the current effects
  Time now_{};
  bool busy_ = false;
  std::size_t closing_ = 0;            // phases whose model is not durable yet
  std::optional<std::string> ending_;  // why the run ends once there is none
  std::set<ClientId> declined_;        // connected clients that take no part: they learn of the end, too
  std::set<ClientId> excluded_;        // connected clients that the run is not for
  std::optional<ClientId> highest_;    // of the clients that ever took part
  bool disagree_ = false;              // clients disagree, so there are as many as the policy counts
  bool over_ = false;
  bool retelling_ = false;
};

}  // namespace fedge::server
