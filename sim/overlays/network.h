// OverlayNetwork: overlay nodes, their messages and virtual time. Executes the nodes' effects (effects.h) in
// the order of time, then of scheduling, so that a network is a function of options, seed and calls. Another
// loop can embed it: run_until() and next_event_time(). Owns everything; one thread, also for callbacks. A
// callback may call the network but not destroy it. An event costs O(log waiting events); 4096 nodes need
// about 40 MB.
//
// Timeouts: a request is answered in the step in which it arrives, or never, so its fate is known before its
// deadline: it is lost, its receiver is down or silent, or the reply's delay is drawn. Only missed deadlines
// become events. This changes no result, because a timer that fires after its reply has no effect.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "dht/overlays/node.h"
#include "sim/overlays/latency.h"
#include "sim/overlays/time_wheel.h"

namespace fedge::sim {

struct NetworkCounters {
  dht::Traffic sent;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_lost = 0;  // lost at random or because the receiver is down
  std::uint64_t in_flight = 0;
  std::uint64_t events = 0;
};

struct NetworkSetup {
  dht::StorePolicy policy = dht::later_wins;
  dht::Identities identities;  // missing ids are drawn
};

class OverlayNetwork {
 public:
  using LookupDone = std::function<void(const dht::LookupResult&)>;
  using PublishDone = std::function<void(const dht::PublishResult&)>;
  // Computes a node's answer to a request. `honest` does what the protocol requires; a hostile node changes
  // the reply before or after, or does not call it. False: no answer.
  using Honest = std::function<bool(const dht::Message& request, dht::Message& reply)>;
  using Answer = std::function<bool(const dht::Message& request, dht::Message& reply, const Honest& honest)>;

  // Creates `nodes` identities, all down. The options must have passed check_options().
  OverlayNetwork(const dht::OverlayOptions& options, std::size_t nodes, const Rng& rng,
                 NetworkSetup setup = {});

  // Joins through the bootstrap, or through a random member; the first node needs none. After a failure, or
  // when a member has lost all contacts, it tries another member one round later.
  void start(dht::Address node, std::optional<dht::Address> bootstrap = std::nullopt);
  // Stops the node at once; if graceful, after the protocol's goodbye. It forgets everything but its id.
  void stop(dht::Address node, bool graceful);
  // Makes all these nodes members with perfect tables; there must be no members yet.
  void start_static(const std::vector<dht::Address>& nodes);

  dht::Operation lookup(dht::Address from, dht::Id key, LookupDone done);
  dht::Operation publish(dht::Address from, const dht::Publication& publication, PublishDone done = nullptr);

  // Processes all events up to and including this time.
  void run_until(Time until);
  std::optional<Time> next_event_time();
  Time now() const { return now_; }

  // Sorted by id.
  const std::vector<dht::Contact>& members() const { return members_; }
  bool up(dht::Address node) const { return slots_[node].up; }
  // The node that is responsible for the key, from global knowledge; there must be members.
  dht::Contact owner(dht::Id key) const;

  dht::OverlayNode& node(dht::Address address) { return *slots_[address].node; }
  const dht::OverlayNode& node(dht::Address address) const { return *slots_[address].node; }
  std::size_t size() const { return slots_.size(); }
  const Latency& latency() const { return latency_; }
  const NetworkCounters& counters() const { return counters_; }
  // Messages that the node has sent and received.
  std::uint64_t load(dht::Address node) const { return slots_[node].load; }
  // Hash of all events so far, in order.
  std::uint64_t trace_hash() const { return trace_; }
  // Sets how this node answers from now on; null: honestly.
  void set_answer(dht::Address node, Answer answer);
  // Sends a message invented by a hostile node, with any sender. It must be one way, or a request with rpc 0,
  // whose reply is ignored.
  void inject(const dht::Message& message);
  // Calls `arrival` for every message that arrives.
  void watch(std::function<void(const dht::Message&)> arrival) { arrival_ = std::move(arrival); }
  // Makes these contacts known to the node.
  void introduce(dht::Address node, std::span<const dht::Contact> others);

 private:
  enum class What : std::uint8_t { kDeliver, kTimeOut, kTick, kRejoin };
  struct NetworkEvent {
    dht::Message* message = nullptr;
    dht::Address node = dht::kNobody;
    std::uint32_t number = 0;  // number of the request or of the session
    What what = What::kDeliver;
  };
  struct Slot {
    std::unique_ptr<dht::OverlayNode> node;
    Answer answer;
    std::uint64_t load = 0;
    std::uint32_t session = 0;  // events of earlier sessions are ignored
    bool up = false;
  };

  void fetch_ahead() const;
  void handle(const NetworkEvent& event);
  void deliver(dht::Message& message);
  void answer(dht::Message& request);
  void transmit(dht::Message& message);
  void time_out_at(const dht::Message& message, dht::Address requester);
  void carry_out(dht::Address address);
  void report(std::vector<dht::LookupResult>& lookups, std::vector<dht::PublishResult>& publications,
              dht::Address address);
  void begin_session(dht::Address address, bool ticking);
  std::optional<dht::Address> random_member(dht::Address except);
  void rejoin(dht::Address address);
  void trace(Time at, const NetworkEvent& event);

  dht::OverlayOptions options_;
  dht::Identities identities_;
  Rng rng_;
  Latency latency_;
  dht::MessagePool pool_;
  dht::Effects effects_{pool_};
  TimeWheel<NetworkEvent> queue_;
  std::vector<Slot> slots_;
  std::vector<dht::Contact> members_;
  std::map<std::pair<dht::Address, dht::Operation>, LookupDone> lookups_;
  std::map<std::pair<dht::Address, dht::Operation>, PublishDone> publications_;
  std::function<void(const dht::Message&)> arrival_;
  NetworkCounters counters_;
  Time now_{};
  std::uint64_t trace_ = 0;
};

}  // namespace fedge::sim
