// OverlayNetwork: overlay nodes, the messages between them and virtual time. Carries out what the nodes want
// done (effects.h), in the order of time, then of scheduling, so that a network is a function of options,
// seed and calls. To be embedded in another loop: run_until() and next_event_time(). Owns everything; one
// thread, on which callbacks run too; a callback may call the network again, but not destroy it. An event
// costs O(log events waiting); 4096 nodes are about 40 MB.
//
// Time-outs: a request is answered in the step in which it arrives, or never. So its fate is known before its
// deadline: when it is lost, when it arrives at nobody or at somebody silent, or when the reply's delay is
// drawn. Only then is an event made of it; the many that are answered in time never cost one, and nothing is
// lost by it, as a timer that goes off after its reply has come does nothing.
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
  std::uint64_t messages_lost = 0;  // by chance, or because there was nobody to receive them
  std::uint64_t in_flight = 0;
  std::uint64_t events = 0;
};

struct NetworkSetup {
  StorePolicy policy = later_wins;
  Identities identities;  // ids that are left out are drawn
};

class OverlayNetwork {
 public:
  using LookupDone = std::function<void(const LookupResult&)>;
  using PublishDone = std::function<void(const PublishResult&)>;
  // What a node answers to a request; `honest` does what the protocol says. False: it stays silent. Who lies
  // changes the reply before or after, or leaves `honest` out.
  using Honest = std::function<bool(const Message& request, Message& reply)>;
  using Answer = std::function<bool(const Message& request, Message& reply, const Honest& honest)>;

  // `nodes` identities, none of which is up. Options must have passed check_options.
  OverlayNetwork(const OverlayOptions& options, std::size_t nodes, const Rng& rng, NetworkSetup setup = {});

  // Joins through the bootstrap, or through a member drawn at random; the first of all needs none. If that
  // fails it tries another one a round later, and so does a member that has lost everybody.
  void start(Address node, std::optional<Address> bootstrap = std::nullopt);
  // At once, without a word, or with the goodbye of the protocol. Forgets everything but its id.
  void stop(Address node, bool graceful);
  // Members with perfect tables, of those up to now none.
  void start_static(const std::vector<Address>& nodes);

  Operation lookup(Address from, Id key, LookupDone done);
  Operation publish(Address from, const Publication& publication, PublishDone done = nullptr);

  // Carries out what happens up to and including that time.
  void run_until(Time until);
  std::optional<Time> next_event_time();
  Time now() const { return now_; }

  // By id.
  const std::vector<Contact>& members() const { return members_; }
  bool up(Address node) const { return slots_[node].up; }
  // Who is responsible for the key, seen from above; there must be members.
  Contact owner(Id key) const;

  OverlayNode& node(Address address) { return *slots_[address].node; }
  const OverlayNode& node(Address address) const { return *slots_[address].node; }
  std::size_t size() const { return slots_.size(); }
  const Latency& latency() const { return latency_; }
  const NetworkCounters& counters() const { return counters_; }
  // Messages that it has sent and received.
  std::uint64_t load(Address node) const { return slots_[node].load; }
  // Of every event so far, in order.
  std::uint64_t trace_hash() const { return trace_; }
  // How this node answers from now on; null: honestly.
  void set_answer(Address node, Answer answer);
  // Sends what somebody hostile has made up, whoever it says it is from. It must be one way, or a request
  // with rpc 0, whose reply nobody waits for.
  void inject(const Message& message);
  // To be told of every message that arrives.
  void watch(std::function<void(const Message&)> arrival) { arrival_ = std::move(arrival); }
  // Tells the node that there are these.
  void introduce(Address node, std::span<const Contact> others);

 private:
  enum class What : std::uint8_t { kDeliver, kTimeOut, kTick, kRejoin };
  struct NetworkEvent {
    Message* message = nullptr;
    Address node = kNobody;
    std::uint32_t number = 0;  // of the request, or the session
    What what = What::kDeliver;
  };
  struct Slot {
    std::unique_ptr<OverlayNode> node;
    Answer answer;
    std::uint64_t load = 0;
    std::uint32_t session = 0;  // what was scheduled for an earlier one is void
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

// Of these, sorted by id and not empty, the one responsible for the key: Chord's successor, Pastry's
// numerically closest (of two the lower id), Kademlia's closest by XOR. O(log n), Kademlia's O(64 log n).
Contact global_owner(OverlayKind kind, const std::vector<Contact>& members, Id key);

}  // namespace fedge::sim
