// OverlayNode: lookups, iterative and recursive.
#include <algorithm>
#include <utility>

#include "dht/overlays/node.h"

namespace fedge::dht {
namespace {

constexpr std::uint16_t kMaxRouteHops = 128;
constexpr unsigned kAttempts = 3;

}  // namespace

Operation OverlayNode::lookup(Id key, NodeStep& step) {
  step_ = &step;
  const Operation operation = next_operation_++;
  LookupResult result{.operation = operation, .key = key};
  if (member_) store().find(key, step.now, result.values);
  const bool all = options_.protections.read_all;
  if (!member_ || (!result.values.empty() && !all)) {  // alone, or no other node needs to be asked
    result.ok = !result.values.empty();
    result.holder = self_;
    scratch().clear();
    if (member_) routing_->responsible(key, options_.replication, scratch());
    if (!scratch().empty()) result.owner = scratch().front();
    step.effects.lookups.push_back(std::move(result));
    return operation;
  }
  start_search(User::kLookup, {.target = key,
                               .goal = all ? Goal::kAllValues : Goal::kValues,
                               .purpose = Purpose::kLookup,
                               .tag = operation});
  return operation;
}

void OverlayNode::find_holders(Id key, Purpose purpose, std::uint32_t tag) {
  start_search(User::kPublish, {.target = key, .goal = Goal::kNodes, .purpose = purpose, .tag = tag});
}

void OverlayNode::start_search(User user, const FindOptions& options) {
  std::size_t index = 0;
  while (index < searches_.size() && searches_[index].busy) ++index;
  if (index == searches_.size()) searches_.emplace_back();
  ActiveSearch& active = searches_[index];
  if (!active.search) active.search = step_->effects.searches.take();
  if (!active.search) active.search = routing_->make_search();
  active.busy = true;
  ++active.generation;
  active.user = user;
  active.options = options;
  active.started = step_->now;
  active.extra = active.extra_timeouts = 0;
  active.attempts = 1;
  Found found = Found::kCloser;
  scratch().clear();
  routing_->looked_for(options.target);
  if (options.via.known())
    scratch().push_back(options.via);
  else
    found = routing_->route(options.target, scratch());
  active.search->start({options.target, self_, options.goal}, found, scratch());
  if (!active.search->done() && start_recursive(index, found)) return;
  advance(index);
}

// Starts a recursive lookup. The search continues iteratively if no answer arrives.
bool OverlayNode::start_recursive(std::size_t index, Found found) {
  ActiveSearch& active = searches_[index];
  const bool possible = options_.recursive && options_.kind != OverlayKind::kKademlia && member_ &&
                        !active.options.want_tables && active.options.goal != Goal::kAllValues &&
                        !scratch().empty() && found != Found::kResponsible;
  if (!possible) return false;
  const Contact first = scratch().front().address == self_.address ? scratch().back() : scratch().front();
  if (first.address == self_.address) return false;
  Message& message = ask({.to = first,
                          .use = RequestUse::kRoute,
                          .tag = static_cast<std::uint32_t>(index),
                          .generation = active.generation},
                         Kind::kRoute, active.options.purpose);
  message.one_way = true;
  message.origin = self_;
  message.key = active.options.target;
  message.want_values = wants_values(active.options.goal);
  message.found = found;
  message.hops = 1;
  step_->effects.timers.push_back({message.rpc, options_.route_timeout});
  ++active.extra;
  return true;
}

void OverlayNode::advance(std::size_t index) {
  ActiveSearch& active = searches_[index];
  while (const auto contact = active.search->next()) {
    Message& message = ask({.to = *contact,
                            .use = RequestUse::kSearch,
                            .tag = static_cast<std::uint32_t>(index),
                            .generation = active.generation},
                           Kind::kFind, active.options.purpose);
    message.key = active.options.target;
    message.want_values = wants_values(active.options.goal);
    message.want_tables = active.options.want_tables;
    message.newcomer = !member_;
    message.hops = static_cast<std::uint16_t>(active.search->outcome().messages / 2);
  }
  if (active.search->done() && !try_again(index)) finish(index);
}

// Retries a route that ended before a responsible node was found; the tables have improved since.
bool OverlayNode::try_again(std::size_t index) {
  ActiveSearch& active = searches_[index];
  const SearchOutcome& outcome = active.search->outcome();
  const bool lost = outcome.nodes.empty() && outcome.values.empty() && outcome.timeouts > 0;
  if (!lost || active.user == User::kTables || active.attempts == kAttempts) return false;
  ++active.attempts;
  active.extra += outcome.messages;
  active.extra_timeouts += outcome.timeouts;
  scratch().clear();
  const Found found = routing_->route(active.options.target, scratch());
  active.search->start({active.options.target, self_, active.options.goal}, found, scratch());
  advance(index);
  return true;
}

void OverlayNode::finish(std::size_t index) {
  ActiveSearch& active = searches_[index];
  active.busy = false;  // later replies to it are ignored
  // The tables may start another search in this place.
  std::unique_ptr<Search> search = std::move(active.search);
  SearchOutcome& outcome = search->outcome();
  outcome.messages += active.extra;
  outcome.timeouts += active.extra_timeouts;
  if (active.user == User::kTables)
    routing_->searched(active.options.tag, outcome, *this);
  else if (active.user == User::kLookup)
    complete_lookup(active, outcome);
  else
    publisher_.found(active.options.tag, outcome.nodes, *this);
  step_->effects.searches.give_back(std::move(search));
}

void OverlayNode::complete_lookup(const ActiveSearch& active, SearchOutcome& outcome) {
  leave_cached(active, outcome);
  if (active.options.goal == Goal::kAllValues) {  // the node itself may be a holder
    std::vector<Value> own;
    store().find(active.options.target, step_->now, own);
    outcome.add_values(own);
    if (!own.empty() && !outcome.holder.known()) outcome.holder = self_;
  }
  LookupResult result{.operation = active.options.tag,
                      .key = active.options.target,
                      .ok = !outcome.values.empty(),
                      .values = std::move(outcome.values),
                      .holder = outcome.holder,
                      .hops = outcome.hops,
                      .messages = outcome.messages,
                      .timeouts = outcome.timeouts,
                      .latency = step_->now - active.started};
  if (!outcome.nodes.empty()) result.owner = outcome.nodes.front();
  step_->effects.lookups.push_back(std::move(result));
}

// Kademlia, section 2.3: stores the value at the closest node that did not have it.
void OverlayNode::leave_cached(const ActiveSearch& active, const SearchOutcome& outcome) {
  if (outcome.values.empty() || !outcome.lacking.known() || !options_.kademlia.cache) return;
  Message& message =
      ask({.to = outcome.lacking, .use = RequestUse::kCache}, Kind::kStore, active.options.purpose);
  message.values = outcome.values;
}

void OverlayNode::take_route(Message& message) {
  if (message.want_values) store().find(message.key, step_->now, step_->effects.scratch_values);
  if (!step_->effects.scratch_values.empty()) return reply_routed(message, Found::kOwners);
  scratch().clear();
  const Found found = routing_->route(message.key, scratch());
  // The last node of a route answers: the owner, a node that the previous one called the owner or, if no
  // values are wanted, a node that knows the owner.
  const bool last = found == Found::kResponsible || message.found == Found::kOwners ||
                    (found == Found::kOwners && !message.want_values) || scratch().empty();
  if (last) return reply_routed(message, found);
  if (message.hops >= kMaxRouteHops) return;
  Message& onward = tell(scratch().front(), Kind::kRoute, message.purpose);
  onward.origin = message.origin;
  onward.key = message.key;
  onward.rpc = message.rpc;
  onward.want_values = message.want_values;
  onward.found = found;
  onward.hops = static_cast<std::uint16_t>(message.hops + 1);
}

void OverlayNode::reply_routed(const Message& route, Found found) {
  Message& answer = tell(route.origin, Kind::kRouted, route.purpose);
  answer.rpc = route.rpc;
  answer.key = route.key;
  answer.found = found;
  answer.hops = route.hops;
  answer.values.swap(step_->effects.scratch_values);
  step_->effects.scratch_values.clear();
  if (answer.values.empty())
    answer.contacts = scratch();
  else
    routing_->responsible(route.key, options_.replication, answer.contacts);
  answer.routed = static_cast<std::uint16_t>(answer.contacts.size());
}

void OverlayNode::take_routed(Message& message) {
  const OpenRequest* open = requests_.find(message.rpc);
  if (open == nullptr || open->use != RequestUse::kRoute) return;
  const OpenRequest request = requests_.take(message.rpc);
  ActiveSearch& active = searches_[request.tag];
  if (!active.busy || active.generation != request.generation) return;
  active.extra = message.hops + 1U;
  SearchOutcome& outcome = active.search->outcome();
  const bool over =
      message.found != Found::kCloser && (!message.values.empty() || active.options.goal != Goal::kValues);
  if (over) {
    outcome.nodes = message.contacts;
    outcome.values = std::move(message.values);
    outcome.holder = message.from;
    outcome.hops = message.hops;
    return finish(request.tag);
  }
  // The answering node holds nothing, but the others that it names may. Does not ask it again.
  std::erase_if(message.contacts, [&](const Contact& c) { return c.address == message.from.address; });
  active.search->start({active.options.target, self_, active.options.goal}, Found::kOwners, message.contacts);
  advance(request.tag);
}

}  // namespace fedge::dht
