#include "sim/overlays/network.h"

#include <algorithm>
#include <set>

#include "core/check.h"

namespace fedge::sim {
namespace {

constexpr std::size_t kSearchBytes = 256;  // as a hint

void prefetch_object(const void* object, std::size_t bytes) {
  const char* first = static_cast<const char*>(object);
  for (std::size_t line = 0; line < bytes; line += 64) __builtin_prefetch(first + line);
}

bool lower_id(const dht::Contact& a, const dht::Contact& b) { return a.id < b.id; }

}  // namespace

OverlayNetwork::OverlayNetwork(const dht::OverlayOptions& options, std::size_t nodes, const Rng& rng,
                               NetworkSetup setup)
    : options_(options),
      identities_(std::move(setup.identities)),
      rng_(rng.fork("overlay network")),
      latency_(nodes, rng),
      slots_(nodes) {
  std::set<dht::Id> taken(identities_.ids.begin(), identities_.ids.end());
  const dht::Proximity proximity = [this](dht::Address a, dht::Address b) { return latency_.base(a, b); };
  for (std::size_t i = 0; i < nodes; ++i) {
    Rng own = rng.fork("overlay node", i);
    if (i == identities_.ids.size()) {
      dht::Id id = own.next_u64();
      while (!taken.insert(id).second) id = own.next_u64();
      identities_.ids.push_back(id);
    }
    const dht::Contact self{identities_.ids[i], static_cast<dht::Address>(i)};
    slots_[i].node = std::make_unique<dht::OverlayNode>(
        self, options_, dht::make_routing(self, options, proximity, identities_), setup.policy, own);
  }
}

void OverlayNetwork::set_answer(dht::Address node, Answer answer) { slots_[node].answer = std::move(answer); }

void OverlayNetwork::inject(const dht::Message& made_up) {
  FEDGE_CHECK(made_up.one_way || (made_up.rpc == 0 && !made_up.reply), "somebody would wait for its reply");
  dht::Message& message = pool_.take();
  message = made_up;
  message.deadline = now_ + options_.rpc_timeout;
  transmit(message);
}

void OverlayNetwork::introduce(dht::Address node, std::span<const dht::Contact> others) {
  dht::NodeStep step{now_, effects_};
  slots_[node].node->introduce(others, step);
  carry_out(node);
}

dht::Contact OverlayNetwork::owner(dht::Id key) const {
  return dht::global_owner(options_.kind, members_, key);
}

std::optional<dht::Address> OverlayNetwork::random_member(dht::Address except) {
  const bool excepted = except < slots_.size() && slots_[except].node->member();
  if (members_.size() <= (excepted ? 1U : 0U)) return std::nullopt;
  for (;;) {
    const dht::Address drawn = members_[rng_.below(members_.size())].address;
    if (drawn != except) return drawn;
  }
}

void OverlayNetwork::begin_session(dht::Address address, bool ticking) {
  Slot& slot = slots_[address];
  FEDGE_CHECK(!slot.up, "a node is started that is up");
  slot.up = true;
  ++slot.session;
  if (!ticking) return;
  // Rounds have the same length at all nodes; each node has a random phase.
  const auto phase = static_cast<std::int64_t>(rng_.uniform() * static_cast<double>(options_.round.count()));
  queue_.push(now_ + Duration(phase), {.node = address, .number = slot.session, .what = What::kTick});
}

void OverlayNetwork::start(dht::Address node, std::optional<dht::Address> bootstrap) {
  if (!bootstrap) bootstrap = random_member(node);
  begin_session(node, true);
  dht::NodeStep step{now_, effects_};
  std::optional<dht::Contact> via;
  if (bootstrap) via = slots_[*bootstrap].node->self();
  slots_[node].node->join(via, step);
  carry_out(node);
}

void OverlayNetwork::start_static(const std::vector<dht::Address>& nodes) {
  FEDGE_CHECK(members_.empty(), "perfect tables are for a network that begins");
  for (const dht::Address address : nodes) members_.push_back(slots_[address].node->self());
  std::sort(members_.begin(), members_.end(), lower_id);
  for (const dht::Address address : nodes) {
    slots_[address].node->fill(members_);
    begin_session(address, true);
  }
}

void OverlayNetwork::stop(dht::Address address, bool graceful) {
  Slot& slot = slots_[address];
  if (!slot.up) return;
  const bool was_member = slot.node->member();
  if (graceful) {
    dht::NodeStep step{now_, effects_};
    slot.node->leave(step);
    carry_out(address);
  }
  slot.up = false;
  ++slot.session;
  slot.node->restart();
  if (was_member) {
    const auto at = std::lower_bound(members_.begin(), members_.end(), slot.node->self(), lower_id);
    members_.erase(at);
  }
  std::vector<dht::LookupResult> lookups;
  std::vector<dht::PublishResult> publications;
  for (auto it = lookups_.lower_bound({address, 0}); it != lookups_.end() && it->first.first == address; ++it)
    lookups.push_back({.operation = it->first.second, .aborted = true});
  for (auto it = publications_.lower_bound({address, 0});
       it != publications_.end() && it->first.first == address; ++it)
    publications.push_back({.operation = it->first.second, .aborted = true});
  report(lookups, publications, address);
}

dht::Operation OverlayNetwork::lookup(dht::Address from, dht::Id key, LookupDone done) {
  dht::NodeStep step{now_, effects_};
  const dht::Operation operation = slots_[from].node->lookup(key, step);
  if (done) lookups_.emplace(std::pair(from, operation), std::move(done));
  carry_out(from);
  return operation;
}

dht::Operation OverlayNetwork::publish(dht::Address from, const dht::Publication& publication,
                                       PublishDone done) {
  dht::NodeStep step{now_, effects_};
  const dht::Operation operation = slots_[from].node->publish(publication, step);
  if (done) publications_.emplace(std::pair(from, operation), std::move(done));
  carry_out(from);
  return operation;
}

std::optional<Time> OverlayNetwork::next_event_time() {
  if (queue_.empty()) return std::nullopt;
  return queue_.next().at;
}

void OverlayNetwork::run_until(Time until) {
  while (!queue_.empty() && queue_.next().at <= until) {
    const auto entry = queue_.pop();
    fetch_ahead();
    now_ = entry.at;
    trace(entry.at, entry.payload);
    handle(entry.payload);
  }
  now_ = std::max(now_, until);
}

// Prefetches the memory of the next events: thousands of nodes do not fit into the processor's caches, and
// each event concerns another node. Pointers are prefetched some events before their targets.
void OverlayNetwork::fetch_ahead() const {
  if (const auto* entry = queue_.ahead(16)) {
    __builtin_prefetch(&slots_[entry->payload.node]);
    if (entry->payload.message != nullptr) {
      const char* message = reinterpret_cast<const char*>(entry->payload.message);
      for (std::size_t line = 0; line < sizeof(dht::Message); line += 64) __builtin_prefetch(message + line);
    }
  }
  if (const auto* entry = queue_.ahead(12)) {
    slots_[entry->payload.node].node->prefetch();
    if (entry->payload.message != nullptr) entry->payload.message->prefetch();
  }
  if (const auto* entry = queue_.ahead(8)) {
    const dht::Message* message = entry->payload.message;
    slots_[entry->payload.node].node->prefetch_lists(message != nullptr ? message->rpc
                                                                        : entry->payload.number);
  }
  if (const auto* entry = queue_.ahead(4)) {
    const dht::Message* message = entry->payload.message;
    if (message != nullptr) {
      const dht::OverlayNode& node = *slots_[entry->payload.node].node;
      node.prefetch_tables(message->from.id, message->key);
      if (message->reply) prefetch_object(node.search_of(message->rpc), kSearchBytes);
    }
  }
  if (const auto* entry = queue_.ahead(2)) {
    const dht::Message* message = entry->payload.message;
    if (message != nullptr && message->reply)
      if (const dht::Search* search = slots_[entry->payload.node].node->search_of(message->rpc))
        search->prefetch();
  }
}

// Mixes time, kind and nodes of an event into the trace hash; the order of events matters.
void OverlayNetwork::trace(Time at, const NetworkEvent& event) {
  ++counters_.events;
  std::uint64_t word = static_cast<std::uint64_t>(at.time_since_epoch().count());
  word = word * 8 + static_cast<std::uint64_t>(event.what);
  if (event.message != nullptr) {
    const dht::Message& message = *event.message;
    word ^= (std::uint64_t{message.from.address} << 32 | message.to.address) * 0x9E3779B97F4A7C15ULL;
    word ^= message.key + message.rpc * 64 + static_cast<std::uint64_t>(message.kind) * 2 + message.reply;
  } else {
    word ^= (std::uint64_t{event.node} << 32 | event.number) * 0x9E3779B97F4A7C15ULL;
  }
  trace_ = (trace_ ^ word) * 0xD6E8FEB86659FD93ULL;
  trace_ ^= trace_ >> 32;
}

void OverlayNetwork::handle(const NetworkEvent& event) {
  if (event.what == What::kDeliver) return deliver(*event.message);
  Slot& slot = slots_[event.node];
  if (!slot.up) return;
  dht::NodeStep step{now_, effects_};
  if (event.what == What::kTimeOut) {
    slot.node->time_out(event.number, step);
    return carry_out(event.node);
  }
  if (event.number != slot.session) return;
  if (event.what == What::kRejoin) return rejoin(event.node);
  slot.node->tick(step);
  carry_out(event.node);
  if (slot.up && slot.session == event.number) queue_.push(now_ + options_.round, event);
}

void OverlayNetwork::rejoin(dht::Address address) {
  const auto bootstrap = random_member(address);
  dht::NodeStep step{now_, effects_};
  dht::OverlayNode& node = *slots_[address].node;
  if (node.member() && node.routing().contacts() > 0) return;  // another node has contacted it meanwhile
  if (bootstrap)
    node.join(slots_[*bootstrap].node->self(), step);
  else if (!node.member())
    node.join(std::nullopt, step);
  carry_out(address);
}

void OverlayNetwork::deliver(dht::Message& message) {
  Slot& slot = slots_[message.to.address];
  --counters_.in_flight;
  const bool request = !message.reply && !message.one_way;
  if (!slot.up) {
    ++counters_.messages_lost;
    if (request) time_out_at(message, message.from.address);
    return pool_.give_back(message);
  }
  ++counters_.messages_received;
  ++slot.load;
  if (arrival_) arrival_(message);
  if (request) {
    answer(message);
  } else if (!message.given_up) {
    dht::NodeStep step{now_, effects_};
    slot.node->take(message, step);
    const dht::Address to = message.to.address;
    pool_.give_back(message);
    return carry_out(to);
  }
  pool_.give_back(message);
}

void OverlayNetwork::answer(dht::Message& request) {
  Slot& slot = slots_[request.to.address];
  dht::Message& reply = pool_.take();
  reply.from = slot.node->self();
  reply.to = request.from;
  reply.key = request.key;
  reply.kind = request.kind;
  reply.purpose = request.purpose;
  reply.rpc = request.rpc;
  reply.deadline = request.deadline;
  reply.given_up = request.given_up;
  reply.reply = true;
  dht::NodeStep step{now_, effects_};
  bool answered = false;
  if (slot.answer)
    answered = slot.answer(request, reply, [&](const dht::Message& asked, dht::Message& filled) {
      return slot.node->answer(asked, filled, step);
    });
  else
    answered = slot.node->answer(request, reply, step);
  if (answered) {
    transmit(reply);
  } else {
    time_out_at(request, request.from.address);
    pool_.give_back(reply);
  }
  carry_out(request.to.address);
}

// Does nothing if the miss was known before.
void OverlayNetwork::time_out_at(const dht::Message& message, dht::Address requester) {
  if (message.given_up) return;
  queue_.push(std::max(now_, message.deadline),
              {.node = requester, .number = message.rpc, .what = What::kTimeOut});
}

void OverlayNetwork::transmit(dht::Message& message) {
  const auto purpose = static_cast<std::size_t>(message.purpose);
  ++counters_.messages_sent;
  ++counters_.sent.messages[purpose];
  counters_.sent.bytes[purpose] += message.bytes();
  ++slots_[message.from.address].load;
  const dht::Address requester = message.reply ? message.to.address : message.from.address;
  if (options_.loss > 0 && rng_.uniform() < options_.loss) {
    ++counters_.messages_lost;
    if (!message.one_way) time_out_at(message, requester);
    return pool_.give_back(message);
  }
  const Time arrival = now_ + latency_.draw(message.from.address, message.to.address);
  if (!message.one_way && arrival >= message.deadline) {
    time_out_at(message, requester);
    message.given_up = true;
  }
  ++counters_.in_flight;
  queue_.push(arrival, {.message = &message, .node = message.to.address});
}

void OverlayNetwork::carry_out(dht::Address address) {
  Slot& slot = slots_[address];
  for (dht::Message* message : effects_.sent) {
    slot.node->sending(*message);
    transmit(*message);
  }
  for (const dht::Timer& timer : effects_.timers)
    queue_.push(now_ + timer.after, {.node = address, .number = timer.rpc, .what = What::kTimeOut});
  if (effects_.joined) {
    const dht::Contact self = slot.node->self();
    members_.insert(std::upper_bound(members_.begin(), members_.end(), self, lower_id), self);
  }
  if (effects_.wants_bootstrap)
    queue_.push(now_ + options_.round, {.node = address, .number = slot.session, .what = What::kRejoin});
  std::vector<dht::LookupResult> lookups;
  std::vector<dht::PublishResult> publications;
  lookups.swap(effects_.lookups);
  publications.swap(effects_.publications);
  effects_.clear();
  if (!lookups.empty() || !publications.empty()) report(lookups, publications, address);
}

void OverlayNetwork::report(std::vector<dht::LookupResult>& lookups,
                            std::vector<dht::PublishResult>& publications, dht::Address address) {
  for (const dht::LookupResult& result : lookups) {
    const auto handle = lookups_.extract({address, result.operation});
    if (handle) handle.mapped()(result);
  }
  for (const dht::PublishResult& result : publications) {
    const auto handle = publications_.extract({address, result.operation});
    if (handle) handle.mapped()(result);
  }
}

}  // namespace fedge::sim
