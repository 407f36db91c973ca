// OverlayNode: one node of an overlay: its routing tables (routing.h), its values (publisher.h), open
// requests (requests.h) and lookups. A pure state machine: every call receives the time and appends effects
// (effects.h). Nothing blocks, and the only randomness is the node's own stream. The driver delivers
// messages, calls answer() within the same step, and reports unanswered requests by time_out(). Use it only
// on the network's thread. The cost of a step is that of its messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/rng.h"
#include "dht/overlays/effects.h"
#include "dht/overlays/requests.h"
#include "dht/overlays/routing.h"
#include "dht/overlays/values/publisher.h"

namespace fedge::dht {

struct NodeStep {
  Time now{};
  Effects& effects;
};

class OverlayNode final : private Host, private PublisherHost {
 public:
  // `options` must outlive the node.
  OverlayNode(const Contact& self, const OverlayOptions& options, std::unique_ptr<Routing> routing,
              StorePolicy policy, const Rng& rng);
  OverlayNode(const OverlayNode&) = delete;
  OverlayNode& operator=(const OverlayNode&) = delete;

  // Resets the node to its identity. Replies to earlier requests are ignored.
  void restart();
  // Joins through a bootstrap. Without one the node is the first, and a member at once.
  void join(const std::optional<Contact>& bootstrap, NodeStep& step);
  // Transfers its values and says goodbye; then call restart().
  void leave(NodeStep& step);
  // Adds contacts, from a saved table or as further bootstraps.
  void introduce(std::span<const Contact> others, NodeStep& step);
  // Call once a round.
  void tick(NodeStep& step);

  // The result is an effect of this step or a later one.
  Operation lookup(Id key, NodeStep& step);
  // Replaces what the node published under this key and slot. A node that is not a member publishes when it
  // becomes one.
  Operation publish(const Publication& publication, NodeStep& step);
  // Stops publishing; copies at other nodes expire.
  void withdraw(Id key, std::uint64_t slot) { publisher_.withdraw(key, slot); }

  // Fills in the reply to a request. Returns false to stay silent, as a node that is not a member does.
  bool answer(const Message& request, Message& reply, NodeStep& step);
  // Handles a reply or a one-way message. Contacts that are not believable are removed from it.
  void take(Message& message, NodeStep& step);
  // Keeps a request without a token until its reply, so that it can be repeated. Call it for each message
  // sent.
  void sending(const Message& message) {
    const bool may_fail = options_.protections.tokens && !message.one_way && message.token == 0;
    if (may_fail && !message.reply) tokens_.keep(message);
  }
  // The request was not answered in time; ignored if it was.
  void time_out(std::uint32_t rpc, NodeStep& step);

  // Prefetches this object; call prefetch_lists() and prefetch_tables() some steps later.
  void prefetch() const {
    const char* first = reinterpret_cast<const char*>(this);
    for (std::size_t line = 0; line < sizeof(*this); line += 64) __builtin_prefetch(first + line);
    __builtin_prefetch(first + sizeof(*this) - 1);
  }
  void prefetch_lists(std::uint32_t rpc) const {
    requests_.prefetch(rpc);
    const char* search = reinterpret_cast<const char*>(searches_.data());
    __builtin_prefetch(search);
    __builtin_prefetch(search + 64);
    const char* routing = reinterpret_cast<const char*>(routing_.get());
    for (std::size_t line = 0; line < kRoutingBytes; line += 64) __builtin_prefetch(routing + line);
  }
  void prefetch_tables(Id from, Id key) const { routing_->prefetch(from, key); }
  // The search that a reply belongs to; null if none.
  const Search* search_of(std::uint32_t rpc) const {
    const OpenRequest* request = requests_.find(rpc);
    const bool searches = request != nullptr && request->use == RequestUse::kSearch;
    return searches ? searches_[request->tag].search.get() : nullptr;
  }

  // The token that a sender at this address must show, if tokens are required.
  std::uint64_t token_of(Address address) const;

  bool member() const { return member_; }
  const Contact& self() const override { return self_; }
  Routing& routing() { return *routing_; }
  const Routing& routing() const { return *routing_; }
  ValueStore& store() { return publisher_.store(); }
  const ValueStore& store() const { return publisher_.store(); }
  // Fills perfect tables instead of joining.
  void fill(std::span<const Contact> everybody);

 private:
  static constexpr std::size_t kRoutingBytes = 320;  // prefetch size of a routing object

  enum class User : std::uint8_t { kLookup, kPublish, kTables };
  struct ActiveSearch {
    std::unique_ptr<Search> search;
    std::uint32_t generation = 0;
    bool busy = false;
    User user = User::kTables;
    FindOptions options;  // tag: of the tables, an operation, or a publishing
    Time started{};
    std::uint32_t extra = 0;  // messages and timeouts of earlier attempts
    std::uint32_t extra_timeouts = 0;
    unsigned attempts = 1;
  };
  struct Suspect {
    Address address = kNobody;
    Time until{};
  };

  // Host and PublisherHost
  Time now() const override { return step_->now; }
  Rng& rng() override { return rng_; }
  std::vector<Contact>& scratch() override { return step_->effects.scratch; }
  Message& request(const Contact& to, Kind kind, Purpose purpose, std::uint32_t tag) override {
    return ask({.to = to, .use = RequestUse::kTables, .tag = tag}, kind, purpose);
  }
  Message& ask(const OpenRequest& request, Kind kind, Purpose purpose) override;
  Message& tell(const Contact& to, Kind kind, Purpose purpose) override;
  void find(const FindOptions& options) override { start_search(User::kTables, options); }
  void find_holders(Id key, Purpose purpose, std::uint32_t tag) override;
  void published(const PublishResult& result) override { step_->effects.publications.push_back(result); }
  bool suspected(Address address) const override;
  void joined(bool well) override;

  void heard(const Message& message);
  bool ask_again(const Message& reply);
  void silent(const OpenRequest& request);
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

  // Ordered by frequency of use: thousands of nodes do not fit into the processor's caches.
  Contact self_;
  const OverlayOptions& options_;
  std::unique_ptr<Routing> routing_;
  NodeStep* step_ = nullptr;  // during a call
  bool member_ = false;
  RequestTable requests_;
  std::vector<ActiveSearch> searches_;
  std::vector<Suspect> suspects_;
  Rng rng_;
  Operation next_operation_ = 1;
  Publisher publisher_;
  AddressTokens tokens_;
};

}  // namespace fedge::dht
