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
#include "sim/overlays/network/latency.h"
#include "sim/overlays/network/time_wheel.h"
#include "sim/overlays/node.h"

namespace fedge::sim {

struct NetworkCounters {
  Traffic sent;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_lost = 0;  // lost at random or because the receiver is down
  std::uint64_t in_flight = 0;
  std::uint64_t events = 0;
};

struct NetworkSetup {
  StorePolicy policy = later_wins;
  Identities identities;  // missing ids are drawn
};

class OverlayNetwork {
 public:
  using LookupDone = std::function<void(const LookupResult&)>;
  using PublishDone = std::function<void(const PublishResult&)>;
  // Computes a node's answer to a request. `honest` does what the protocol requires; a hostile node changes
  // the reply before or after, or does not call it. False: no answer.
  using Honest = std::function<bool(const Message& request, Message& reply)>;
  using Answer = std::function<bool(const Message& request, Message& reply, const Honest& honest)>;

  // Creates `nodes` identities, all down. The options must have passed check_options().
  OverlayNetwork(const OverlayOptions& options, std::size_t nodes, const Rng& rng, NetworkSetup setup = {});

  // Joins through the bootstrap, or through a random member; the first node needs none. After a failure, or
  // when a member has lost all contacts, it tries another member one round later.
  void start(Address node, std::optional<Address> bootstrap = std::nullopt);
  // Stops the node at once; if graceful, after the protocol's goodbye. It forgets everything but its id.
  void stop(Address node, bool graceful);
  // Makes all these nodes members with perfect tables; there must be no members yet.
  void start_static(const std::vector<Address>& nodes);

  Operation lookup(Address from, Id key, LookupDone done);
  Operation publish(Address from, const Publication& publication, PublishDone done = nullptr);

  // Processes all events up to and including this time.
  void run_until(Time until);
  std::optional<Time> next_event_time();
  Time now() const { return now_; }

  // Sorted by id.
  const std::vector<Contact>& members() const { return members_; }
  bool up(Address node) const { return slots_[node].up; }
  // The node that is responsible for the key, from global knowledge; there must be members.
  Contact owner(Id key) const;

  OverlayNode& node(Address address) { return *slots_[address].node; }
  const OverlayNode& node(Address address) const { return *slots_[address].node; }
  std::size_t size() const { return slots_.size(); }
  const Latency& latency() const { return latency_; }
  const NetworkCounters& counters() const { return counters_; }
  // Messages that the node has sent and received.
  std::uint64_t load(Address node) const { return slots_[node].load; }
  // Hash of all events so far, in order.
  std::uint64_t trace_hash() const { return trace_; }
  // Sets how this node answers from now on; null: honestly.
  void set_answer(Address node, Answer answer);
  // Sends a message invented by a hostile node, with any sender. It must be one way, or a request with rpc 0,
  // whose reply is ignored.
  void inject(const Message& message);
  // Calls `arrival` for every message that arrives.
  void watch(std::function<void(const Message&)> arrival) { arrival_ = std::move(arrival); }
  // Makes these contacts known to the node.
  void introduce(Address node, std::span<const Contact> others);

 private:
  enum class What : std::uint8_t { kDeliver, kTimeOut, kTick, kRejoin };
  struct NetworkEvent {
    Message* message = nullptr;
    Address node = kNobody;
    std::uint32_t number = 0;  // number of the request or of the session
    What what = What::kDeliver;
  };
  struct Slot {
    std::unique_ptr<OverlayNode> node;
    Answer answer;
    std::uint64_t load = 0;
    std::uint32_t session = 0;  // events of earlier sessions are ignored
    bool up = false;
  };

  void fetch_ahead() const;
  void handle(const NetworkEvent& event);
  void deliver(Message& message);
  void answer(Message& request);
  void transmit(Message& message);
  void time_out_at(const Message& message, Address requester);
  void carry_out(Address address);
  void report(std::vector<LookupResult>& lookups, std::vector<PublishResult>& publications, Address address);
  void begin_session(Address address, bool ticking);
  std::optional<Address> random_member(Address except);
  void rejoin(Address address);
  void trace(Time at, const NetworkEvent& event);

  OverlayOptions options_;
  Identities identities_;
  Rng rng_;
  Latency latency_;
  MessagePool pool_;
  Effects effects_{pool_};
  TimeWheel<NetworkEvent> queue_;
  std::vector<Slot> slots_;
  std::vector<Contact> members_;
  std::map<std::pair<Address, Operation>, LookupDone> lookups_;
  std::map<std::pair<Address, Operation>, PublishDone> publications_;
  std::function<void(const Message&)> arrival_;
  NetworkCounters counters_;
  Time now_{};
  std::uint64_t trace_ = 0;
};

// The member that is responsible for the key: Chord's successor, Pastry's numerically closest (of two, the
// lower id), Kademlia's closest by XOR. `members` must be sorted by id and not empty. O(log n); Kademlia O(64
// log n).
Contact global_owner(OverlayKind kind, const std::vector<Contact>& members, Id key);

}  // namespace fedge::sim
