#include "dht/overlays/node.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace fedge::dht {
namespace {

constexpr std::size_t kSuspects = 32;
constexpr std::size_t kTokens = 512;
constexpr std::size_t kFirstPending = 8;
constexpr std::size_t kFirstSearches = 2;

}  // namespace

OverlayNode::OverlayNode(const Contact& self, const OverlayOptions& options, std::unique_ptr<Routing> routing,
                         StorePolicy policy, const Rng& rng)
    : self_(self),
      options_(options),
      routing_(std::move(routing)),
      pending_(kFirstPending),
      rng_(rng),
      repair_pace_(options.repair),
      store_(options.store, std::move(policy)) {
  searches_.reserve(kFirstSearches);
}

void OverlayNode::restart() {
  routing_->clear();
  store_.clear();
  member_ = false;
  for (Pending& pending : pending_) pending.rpc = 0;
  for (ActiveSearch& active : searches_) active.busy = false;
  for (Publishing& publishing : publishings_) publishing.busy = false;
  standing_.clear();
  suspects_.clear();
  tokens_.clear();
  untokened_.clear();
}

void OverlayNode::join(const std::optional<Contact>& bootstrap, NodeStep& step) {
  step_ = &step;
  if (bootstrap)
    routing_->join(*bootstrap, *this);
  else
    joined(true);
}

void OverlayNode::introduce(std::span<const Contact> others, NodeStep& step) {
  step_ = &step;
  for (const Contact& other : others) routing_->heard(other, true, *this);
}

void OverlayNode::fill(std::span<const Contact> everybody) {
  routing_->fill(everybody, rng_);
  member_ = true;
}

void OverlayNode::tick(NodeStep& step) {
  step_ = &step;
  if (!member_) return;
  routing_->tick(*this);
  std::erase_if(standing_, [&](const Standing& standing) {
    return standing.publication.expires && *standing.publication.expires <= step.now;
  });
  for (Standing& standing : standing_) {
    const bool due = standing.pace.rounds_begin() > 0;
    if (due || standing.first != 0 || std::exchange(standing.again, false))
      begin_publishing(standing, std::exchange(standing.first, 0));
  }
  if (repair_pace_.rounds_begin() == 0) return;
  store_.expire(step.now);
  repair();
}

Message& OverlayNode::request(const Contact& to, Kind kind, Purpose purpose, std::uint32_t tag) {
  return ask({.to = to, .use = Use::kTables, .tag = tag}, kind, purpose);
}

Message& OverlayNode::tell(const Contact& to, Kind kind, Purpose purpose) {
  Message& message = step_->effects.send(self_, to, kind, purpose);
  message.one_way = true;
  show_token(message);
  return message;
}

// Registers and creates a request. Numbers increase; if a number's place is still taken, the table doubles.
Message& OverlayNode::ask(Pending pending, Kind kind, Purpose purpose) {
  if (next_rpc_ == 0) ++next_rpc_;
  while (pending_[next_rpc_ & (pending_.size() - 1)].rpc != 0) {
    std::vector<Pending> larger(2 * pending_.size());
    for (const Pending& old : pending_)
      if (old.rpc != 0) larger[old.rpc & (larger.size() - 1)] = old;
    pending_ = std::move(larger);
  }
  pending.rpc = next_rpc_++;
  pending_[pending.rpc & (pending_.size() - 1)] = pending;
  Message& message = step_->effects.send(self_, pending.to, kind, purpose);
  message.rpc = pending.rpc;
  message.deadline = step_->now + options_.rpc_timeout;
  show_token(message);
  return message;
}

OverlayNode::Pending* OverlayNode::pending_of(std::uint32_t rpc) {
  Pending& pending = pending_[rpc & (pending_.size() - 1)];
  return rpc != 0 && pending.rpc == rpc ? &pending : nullptr;
}

bool OverlayNode::suspected(Address address) const {
  for (const Suspect& suspect : suspects_)
    if (suspect.address == address) return suspect.until > step_->now;
  return false;
}

void OverlayNode::suspect(const Contact& contact) {
  std::erase_if(suspects_,
                [&](const Suspect& s) { return s.address == contact.address || s.until <= step_->now; });
  if (suspects_.size() == kSuspects) suspects_.erase(suspects_.begin());
  const Duration span = seconds(to_seconds(options_.round) * options_.suspicion);
  suspects_.push_back({contact.address, step_->now + span});
  routing_->silent(contact, *this);
}

void OverlayNode::heard(const Message& message) {
  if (!suspects_.empty())
    std::erase_if(suspects_, [&](const Suspect& s) { return s.address == message.from.address; });
  // A newcomer does not answer yet; entries about it in the tables are from an earlier session.
  if (message.newcomer) return routing_->silent(message.from, *this);
  if (message.kind != Kind::kRouted) routing_->heard(message.from, message.kind == Kind::kPing, *this);
}

void OverlayNode::joined(bool well) {
  if (well && !member_) step_->effects.joined = true;
  if (!well) step_->effects.wants_bootstrap = true;
  member_ = member_ || well;
}

bool OverlayNode::answer(const Message& request, Message& reply, NodeStep& step) {
  step_ = &step;
  if (!member_ || !routing_->believable(request.from)) return false;
  if (options_.protections.tokens && request.token != token_of(request.from.address)) {
    reply.token = token_of(request.from.address);
    reply.retry = true;
    return true;
  }
  heard(request);
  if (request.kind == Kind::kFind) {
    if (request.want_values) store_.find(request.key, step.now, reply.values);
    if (reply.values.empty()) {
      reply.found = routing_->route(request.key, reply.contacts);
    } else {
      reply.found = Found::kOwners;
      routing_->responsible(request.key, options_.replication, reply.contacts);
    }
    if (reply.found == Found::kCloser)  // no node needs its own contact
      std::erase_if(reply.contacts,
                    [&](const Contact& contact) { return contact.address == request.from.address; });
    reply.routed = static_cast<std::uint16_t>(reply.contacts.size());
    if (request.want_tables) routing_->answer(request, reply, *this);
  } else if (request.kind == Kind::kStore) {
    reply.accepted = take_store(request);
  } else {
    routing_->answer(request, reply, *this);
  }
  return true;
}

void OverlayNode::take(Message& message, NodeStep& step) {
  step_ = &step;
  if (message.one_way) {
    if (message.kind == Kind::kRouted) return take_routed(message);
    const bool proven = !options_.protections.tokens || message.token == token_of(message.from.address);
    if (!member_ || !proven || !routing_->believable(message.from)) return;
    if (message.kind == Kind::kLeave) return routing_->silent(message.from, *this);
    heard(message);
    if (message.kind == Kind::kRoute) return take_route(message);
    if (message.kind == Kind::kStore)
      take_store(message);
    else
      routing_->told(message, *this);
    return;
  }
  Pending* open = pending_of(message.rpc);
  if (open == nullptr) return;
  if (message.retry && ask_again(message)) return;
  const Pending pending = std::exchange(*open, Pending{});
  forget_request(message.rpc);
  // The reply comes from another node than the one asked, or requires a retry.
  if (message.retry || message.from != pending.to) return silent(pending);
  heard(message);
  leave_out_disbelieved(message);
  switch (pending.use) {
    case Use::kSearch: {
      ActiveSearch& active = searches_[pending.tag];
      if (!active.busy || active.generation != pending.generation) return;
      active.search->answered(message);
      if (message.contacts.size() > message.routed) routing_->replied(message, active.options.tag, *this);
      return advance(pending.tag);
    }
    case Use::kTables:
      return routing_->replied(message, pending.tag, *this);
    case Use::kStore:
      return stored(pending, true, message.accepted);
    case Use::kRepair:
      return pushed(pending);
    case Use::kCache:
    case Use::kRoute:
      return;
  }
}

void OverlayNode::leave_out_disbelieved(Message& message) const {
  if (suspects_.empty() && !options_.protections.bound_ids) return;
  const auto disbelieved = [&](const Contact& contact) {
    return suspected(contact.address) || !routing_->believable(contact);
  };
  const auto routed = message.contacts.begin() + message.routed;
  message.routed = static_cast<std::uint16_t>(message.routed -
                                              std::count_if(message.contacts.begin(), routed, disbelieved));
  std::erase_if(message.contacts, disbelieved);
}

void OverlayNode::time_out(std::uint32_t rpc, NodeStep& step) {
  step_ = &step;
  Pending* open = pending_of(rpc);
  if (open == nullptr) return;
  const Pending pending = std::exchange(*open, Pending{});
  forget_request(rpc);
  silent(pending);
}

void OverlayNode::silent(const Pending& pending) {
  if (pending.use == Use::kRoute) {  // some node on the route has failed: continue iteratively
    ActiveSearch& active = searches_[pending.tag];
    if (!active.busy || active.generation != pending.generation) return;
    ++active.extra_timeouts;
    return advance(pending.tag);
  }
  suspect(pending.to);
  if (pending.use == Use::kStore) return stored(pending, false, false);
  if (pending.use != Use::kSearch) return;
  ActiveSearch& active = searches_[pending.tag];
  if (!active.busy || active.generation != pending.generation) return;
  active.search->silent(pending.to);
  advance(pending.tag);
}

// Simulates a hash under the node's secret; does not change the stream's state.
std::uint64_t OverlayNode::token_of(Address address) const {
  return rng_.fork("token", address).next_u64() | 1;
}

void OverlayNode::remember_token(Address address, std::uint64_t token) {
  std::erase_if(tokens_, [&](const Token& known) { return known.address == address; });
  if (tokens_.size() == kTokens) tokens_.erase(tokens_.begin());
  tokens_.push_back({address, token});
}

void OverlayNode::show_token(Message& message) {
  if (!options_.protections.tokens) return;
  for (const Token& known : tokens_)
    if (known.address == message.to.address) message.token = known.token;
}

void OverlayNode::forget_request(std::uint32_t rpc) {
  std::erase_if(untokened_, [&](const Message& request) { return request.rpc == rpc; });
}

// Repeats the request, at most once, with the token from the reply.
bool OverlayNode::ask_again(const Message& reply) {
  remember_token(reply.from.address, reply.token);
  const auto request = std::find_if(untokened_.begin(), untokened_.end(),
                                    [&](const Message& kept) { return kept.rpc == reply.rpc; });
  if (request == untokened_.end()) return false;
  Message& again = step_->effects.send(self_, request->to, request->kind, request->purpose);
  again = *request;
  again.token = reply.token;
  again.deadline = step_->now + options_.rpc_timeout;
  untokened_.erase(request);
  return true;
}

}  // namespace fedge::dht
