// OverlayNode: one node of an overlay: its routing tables (routing.h), requests in flight, lookups, the
// values that it holds, those that it publishes, and repair. A pure state machine: every call is told the
// time and gives effects (effects.h); nothing blocks, and the only randomness is the node's own named stream.
// The driver delivers messages, asks for answer() within the same step, and reports time_out() of a request
// that was not answered in time. One thread: its network's. A step costs the messages that it makes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/rng.h"
#include "sim/overlays/effects.h"
#include "sim/overlays/routing.h"
#include "sim/overlays/value_store.h"

namespace fedge::sim {

struct NodeStep {
  Time now{};
  Effects& effects;
};

// What a node shall publish, and again every T_rep rounds until it stops.
struct Publication {
  Id key = 0;
  std::uint64_t slot = 0;
  std::uint64_t sequence = 0;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  std::optional<Time> expires;  // nothing: three times T_rep after each publication
};

class OverlayNode final : private Host {
 public:
  // The options must outlive it.
  OverlayNode(const Contact& self, const OverlayOptions& options, std::unique_ptr<Routing> routing,
              StorePolicy policy, const Rng& rng);
  OverlayNode(const OverlayNode&) = delete;
  OverlayNode& operator=(const OverlayNode&) = delete;

  // As it was made: identity and nothing else. What was asked before finds no answer any more.
  void restart();
  // Without a bootstrap it is the first, and a member at once.
  void join(const std::optional<Contact>& bootstrap, NodeStep& step);
  // Hands over what it holds and says goodbye; then call restart().
  void leave(NodeStep& step);
  // Others that there are, from a table that was saved, or further bootstraps.
  void introduce(std::span<const Contact> others, NodeStep& step);
  // A round has passed.
  void tick(NodeStep& step);

  // The result comes as an effect of this step or a later one.
  Operation lookup(Id key, NodeStep& step);
  // Replaces what the node published under this key and slot before. Who is no member yet publishes when it
  // is one.
  Operation publish(const Publication& publication, NodeStep& step);
  // Publishes it no more; what others hold expires.
  void withdraw(Id key, std::uint64_t slot);

  // Fills in the reply to a request. False: it stays silent, as one does that is no member yet.
  bool answer(const Message& request, Message& reply, NodeStep& step);
  // A reply, or a message that wants none. Contacts that are not believed in are taken out of it.
  void take(Message& message, NodeStep& step);
  // A message of the last step goes out now.
  void sending(const Message& message) {
    const bool may_fail = options_.protections.tokens && !message.one_way && message.token == 0;
    if (may_fail && !message.reply) untokened_.push_back(message);
  }
  // The request was not answered in time; ignored if it was.
  void time_out(std::uint32_t rpc, NodeStep& step);

  // Asks for this object's memory, and some steps later for that of its tables and lists.
  void prefetch() const {
    const char* first = reinterpret_cast<const char*>(this);
    for (std::size_t line = 0; line < sizeof(*this); line += 64) __builtin_prefetch(first + line);
    __builtin_prefetch(first + sizeof(*this) - 1);
  }
  void prefetch_lists(std::uint32_t rpc) const {
    __builtin_prefetch(&pending_[rpc & (pending_.size() - 1)]);
    const char* search = reinterpret_cast<const char*>(searches_.data());
    __builtin_prefetch(search);
    __builtin_prefetch(search + 64);
    const char* routing = reinterpret_cast<const char*>(routing_.get());
    for (std::size_t line = 0; line < kRoutingBytes; line += 64) __builtin_prefetch(routing + line);
  }
  void prefetch_tables(Id from, Id key) const { routing_->prefetch(from, key); }
  // The search that a reply belongs to; null if to none.
  const Search* search_of(std::uint32_t rpc) const {
    const Pending& pending = pending_[rpc & (pending_.size() - 1)];
    const bool open = pending.rpc == rpc && pending.use == Use::kSearch;
    return open ? searches_[pending.tag].search.get() : nullptr;
  }

  // What whoever sends from that address has to show, where tokens are asked for.
  std::uint64_t token_of(Address address) const;

  bool member() const { return member_; }
  const Contact& self() const override { return self_; }
  Routing& routing() { return *routing_; }
  const Routing& routing() const { return *routing_; }
  ValueStore& store() { return store_; }
  const ValueStore& store() const { return store_; }
  // Perfect tables instead of a join.
  void fill(std::span<const Contact> everybody);

 private:
  static constexpr std::size_t kRoutingBytes = 320;  // of an object with tables, as a hint

  enum class Use : std::uint8_t { kSearch, kTables, kStore, kRepair, kCache, kRoute };
  struct Pending {
    Contact to;
    std::uint32_t rpc = 0;  // 0: free
    Use use = Use::kTables;
    std::uint32_t tag = 0;  // of the tables; or which search or publishing it belongs to
    std::uint32_t generation = 0;
    Id key = 0;
    std::uint64_t slot = 0;
  };
  enum class User : std::uint8_t { kLookup, kPublish, kTables };
  struct ActiveSearch {
    std::unique_ptr<Search> search;
    std::uint32_t generation = 0;
    bool busy = false;
    User user = User::kTables;
    FindOptions options;  // tag: of the tables, an operation, or a publishing
    Time started{};
    std::uint32_t extra = 0;  // messages and time-outs of attempts before
    std::uint32_t extra_timeouts = 0;
    unsigned attempts = 1;
  };
  struct Publishing {         // a value on its way to those responsible
    Operation operation = 0;  // 0: nobody waits for it
    std::uint32_t generation = 0;
    bool busy = false;
    std::uint32_t waiting = 0;
    bool moved = false;  // it lay here, where it does not belong
    Purpose purpose = Purpose::kPublish;
    Value value;
    PublishResult result;
    Time started{};
  };
  struct Standing {  // published again and again
    Publication publication;
    Pace pace;
    Operation first = 0;  // not begun yet: it waits for membership
    bool again = false;   // it failed
  };
  struct Token {
    Address address = kNobody;
    std::uint64_t token = 0;
  };
  struct Suspect {
    Address address = kNobody;
    Time until{};
  };

  // Host
  Time now() const override { return step_->now; }
  Rng& rng() override { return rng_; }
  std::vector<Contact>& scratch() override { return step_->effects.scratch; }
  Message& request(const Contact& to, Kind kind, Purpose purpose, std::uint32_t tag) override;
  Message& tell(const Contact& to, Kind kind, Purpose purpose) override;
  void find(const FindOptions& options) override;
  bool suspected(Address address) const override;
  void joined(bool well) override;

  Message& ask(Pending pending, Kind kind, Purpose purpose);
  Pending* pending_of(std::uint32_t rpc);
  void heard(const Message& message);
  void remember_token(Address address, std::uint64_t token);
  void show_token(Message& message);
  void forget_request(std::uint32_t rpc);
  bool ask_again(const Message& reply);
  void silent(const Pending& pending);
  void leave_out_disbelieved(Message& message) const;
  void suspect(const Contact& contact);

  void start_search(User user, const FindOptions& options);
  bool start_recursive(std::size_t index, Found found);
  void advance(std::size_t index);
  bool try_again(std::size_t index);
  void finish(std::size_t index);
  void complete_lookup(const ActiveSearch& active, SearchOutcome& outcome);
  void leave_cached(const ActiveSearch& active, const SearchOutcome& outcome);
  void take_route(Message& message);
  void take_routed(Message& message);
  void reply_routed(const Message& route, Found found);

  void begin_publishing(const Standing& standing, Operation operation);
  void send_away(const Value& value, Purpose purpose, Operation operation);
  void store_at(std::size_t index, const std::vector<Contact>& nodes);
  void stored(const Pending& pending, bool answered, bool accepted);
  void finish_publishing(std::size_t index);
  bool take_store(const Message& message);
  void repair();
  bool repair(StoredValue& stored, const std::vector<Contact>& holders);
  void push(StoredValue& stored, const std::vector<Contact>& holders, const Contact& to);
  void pushed(const Pending& pending);

  // In the order of how often they are needed: thousands of nodes do not fit into the processor's caches.
  Contact self_;
  const OverlayOptions& options_;
  std::unique_ptr<Routing> routing_;
  NodeStep* step_ = nullptr;  // during a call
  std::uint32_t next_rpc_ = 1;
  bool member_ = false;
  std::vector<Pending> pending_;  // at rpc modulo its size, a power of two
  std::vector<ActiveSearch> searches_;
  std::vector<Suspect> suspects_;
  std::vector<Standing> standing_;
  std::vector<Publishing> publishings_;
  Rng rng_;
  Operation next_operation_ = 1;
  Pace repair_pace_;
  ValueStore store_;
  std::vector<Token> tokens_;       // that others have given to this node
  std::vector<Message> untokened_;  // requests that went out without one
};

}  // namespace fedge::sim
