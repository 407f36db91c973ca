#include "dht/overlays/node.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace fedge::dht {
namespace {

constexpr std::size_t kSuspects = 32;
constexpr std::size_t kFirstSearches = 2;

}  // namespace

OverlayNode::OverlayNode(const Contact& self, const OverlayOptions& options, std::unique_ptr<Routing> routing,
                         StorePolicy policy, const Rng& rng)
    : self_(self),
      options_(options),
      routing_(std::move(routing)),
      rng_(rng),
      publisher_(self.address, options, *routing_, std::move(policy)) {
  searches_.reserve(kFirstSearches);
}

void OverlayNode::restart() {
  routing_->clear();
  publisher_.clear();
  member_ = false;
  requests_.clear();
  for (ActiveSearch& active : searches_) active.busy = false;
  suspects_.clear();
  tokens_.clear();
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
  publisher_.tick(*this);
}

void OverlayNode::leave(NodeStep& step) {
  step_ = &step;
  if (!member_) return;
  publisher_.leave(*this);
  std::vector<Contact> neighbours;
  routing_->neighbours(neighbours);
  for (const Contact& neighbour : neighbours) tell(neighbour, Kind::kLeave, Purpose::kMaintenance);
}

Operation OverlayNode::publish(const Publication& publication, NodeStep& step) {
  step_ = &step;
  const Operation operation = next_operation_++;
  publisher_.publish(publication, operation, member_, *this);
  return operation;
}

Message& OverlayNode::tell(const Contact& to, Kind kind, Purpose purpose) {
  Message& message = step_->effects.send(self_, to, kind, purpose);
  message.one_way = true;
  if (options_.protections.tokens) tokens_.show(message);
  return message;
}

Message& OverlayNode::ask(const OpenRequest& request, Kind kind, Purpose purpose) {
  const std::uint32_t rpc = requests_.add(request);
  Message& message = step_->effects.send(self_, request.to, kind, purpose);
  message.rpc = rpc;
  message.deadline = step_->now + options_.rpc_timeout;
  if (options_.protections.tokens) tokens_.show(message);
  return message;
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
    if (request.want_values) store().find(request.key, step.now, reply.values);
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
    reply.accepted = publisher_.take(request, step.now);
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
      publisher_.take(message, step.now);
    else
      routing_->told(message, *this);
    return;
  }
  if (requests_.find(message.rpc) == nullptr) return;
  if (message.retry && ask_again(message)) return;
  const OpenRequest request = requests_.take(message.rpc);
  tokens_.forget(message.rpc);
  // The reply comes from another node than the one asked, or requires a retry.
  if (message.retry || message.from != request.to) return silent(request);
  heard(message);
  leave_out_disbelieved(message);
  switch (request.use) {
    case RequestUse::kSearch: {
      ActiveSearch& active = searches_[request.tag];
      if (!active.busy || active.generation != request.generation) return;
      active.search->answered(message);
      if (message.contacts.size() > message.routed) routing_->replied(message, active.options.tag, *this);
      return advance(request.tag);
    }
    case RequestUse::kTables:
      return routing_->replied(message, request.tag, *this);
    case RequestUse::kStore:
      return publisher_.stored(request, true, message.accepted, *this);
    case RequestUse::kRepair:
      return publisher_.pushed(request);
    case RequestUse::kCache:
    case RequestUse::kRoute:
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
  if (requests_.find(rpc) == nullptr) return;
  const OpenRequest request = requests_.take(rpc);
  tokens_.forget(rpc);
  silent(request);
}

void OverlayNode::silent(const OpenRequest& request) {
  if (request.use == RequestUse::kRoute) {  // some node on the route has failed: continue iteratively
    ActiveSearch& active = searches_[request.tag];
    if (!active.busy || active.generation != request.generation) return;
    ++active.extra_timeouts;
    return advance(request.tag);
  }
  suspect(request.to);
  if (request.use == RequestUse::kStore) return publisher_.stored(request, false, false, *this);
  if (request.use != RequestUse::kSearch) return;
  ActiveSearch& active = searches_[request.tag];
  if (!active.busy || active.generation != request.generation) return;
  active.search->silent(request.to);
  advance(request.tag);
}

// Simulates a hash under the node's secret; does not change the stream's state.
std::uint64_t OverlayNode::token_of(Address address) const {
  return rng_.fork("token", address).next_u64() | 1;
}

// Repeats the request, at most once, with the token from the reply.
bool OverlayNode::ask_again(const Message& reply) {
  tokens_.remember(reply.from.address, reply.token);
  const auto request = tokens_.take(reply.rpc);
  if (!request) return false;
  Message& again = step_->effects.send(self_, request->to, request->kind, request->purpose);
  again = *request;
  again.token = reply.token;
  again.deadline = step_->now + options_.rpc_timeout;
  return true;
}

}  // namespace fedge::dht
