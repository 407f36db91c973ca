// OverlayNode: values that it publishes and stores, and repair.
#include <algorithm>
#include <utility>

#include "core/check.h"
#include "dht/overlays/node.h"

namespace fedge::dht {
namespace {

constexpr double kLifetimes = 3;             // lifetime of a value, in periods T_rep
constexpr std::size_t kSentAwayAtOnce = 16;  // most values for which one round's repair looks for new holders

bool contains(const std::vector<Address>& addresses, Address address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

std::vector<Address> addresses_of(const std::vector<Contact>& contacts) {
  std::vector<Address> addresses;
  for (const Contact& contact : contacts) addresses.push_back(contact.address);
  return addresses;
}

}  // namespace

Operation OverlayNode::publish(const Publication& publication, NodeStep& step) {
  step_ = &step;
  withdraw(publication.key, publication.slot);
  const Operation operation = next_operation_++;
  standing_.push_back({publication, Pace(options_.republish), member_ ? 0 : operation});
  if (member_) begin_publishing(standing_.back(), operation);
  return operation;
}

void OverlayNode::withdraw(Id key, std::uint64_t slot) {
  std::erase_if(standing_, [&](const Standing& standing) {
    return standing.publication.key == key && standing.publication.slot == slot;
  });
}

void OverlayNode::begin_publishing(const Standing& standing, Operation operation) {
  const Publication& what = standing.publication;
  const Duration life = seconds(to_seconds(options_.round) * options_.republish * kLifetimes);
  const Time expires = what.expires.value_or(step_->now + life);
  send_away({what.key, what.slot, what.sequence, expires, what.bytes}, Purpose::kPublish, operation);
}

// Sends the value to its responsible nodes.
void OverlayNode::send_away(const Value& value, Purpose purpose, Operation operation) {
  std::size_t index = 0;
  while (index < publishings_.size() && publishings_[index].busy) ++index;
  if (index == publishings_.size()) publishings_.emplace_back();
  Publishing& publishing = publishings_[index];
  publishing = {.operation = operation,
                .generation = publishing.generation + 1,
                .busy = true,
                .purpose = purpose,
                .value = value,
                .result = {.operation = operation, .key = value.key},
                .started = step_->now};
  start_search(User::kPublish, {.target = value.key,
                                .goal = Goal::kNodes,
                                .purpose = purpose,
                                .tag = static_cast<std::uint32_t>(index)});
}

void OverlayNode::store_at(std::size_t index, const std::vector<Contact>& nodes) {
  Publishing& publishing = publishings_[index];
  std::vector<Contact> holders(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                  nodes.size(), options_.replication)));
  publishing.moved = publishing.purpose == Purpose::kRepair;
  for (const Contact& holder : holders) {
    if (holder.address == self_.address) {
      publishing.moved = false;  // this node is responsible after all
      StoredValue* stored = store_.offer(publishing.value, step_->now);
      if (stored != nullptr) {
        stored->holders = addresses_of(holders);
        stored->cached = false;
      }
      ++(stored != nullptr ? publishing.result.holders : publishing.result.refused);
      continue;
    }
    Message& message = ask({.to = holder,
                            .use = Use::kStore,
                            .tag = static_cast<std::uint32_t>(index),
                            .generation = publishing.generation},
                           Kind::kStore, publishing.purpose);
    message.values.push_back(publishing.value);
    message.contacts = holders;
    ++publishing.waiting;
  }
  if (publishing.waiting == 0) finish_publishing(index);
}

void OverlayNode::stored(const Pending& pending, bool answered, bool accepted) {
  Publishing& publishing = publishings_[pending.tag];
  if (!publishing.busy || publishing.generation != pending.generation) return;
  if (answered) ++(accepted ? publishing.result.holders : publishing.result.refused);
  if (--publishing.waiting == 0) finish_publishing(pending.tag);
}

void OverlayNode::finish_publishing(std::size_t index) {
  Publishing& publishing = publishings_[index];
  publishing.busy = false;
  const PublishResult& result = publishing.result;
  if (publishing.moved && result.holders + result.refused > 0)
    store_.erase(publishing.value.key, publishing.value.slot);
  // No node has taken or refused the value: publish it again next round, if the node still publishes it.
  if (publishing.purpose == Purpose::kPublish && result.holders + result.refused == 0)
    for (Standing& standing : standing_)
      if (standing.publication.key == publishing.value.key &&
          standing.publication.slot == publishing.value.slot)
        standing.again = true;
  publishing.value.bytes.reset();
  publishing.result.latency = step_->now - publishing.started;
  if (publishing.operation != 0) step_->effects.publications.push_back(publishing.result);
}

// A store message without contacts is a cached copy from a lookup.
bool OverlayNode::take_store(const Message& message) {
  bool all = !message.values.empty();
  for (const Value& value : message.values) {
    StoredValue* stored = store_.get(value.key, value.slot);
    const bool had = stored != nullptr && !stored->cached;
    stored = store_.offer(value, step_->now);
    all = all && stored != nullptr;
    if (stored == nullptr) continue;
    stored->cached = message.contacts.empty() && !had;
    if (!message.contacts.empty()) stored->holders = addresses_of(message.contacts);
  }
  return all;
}

// Every holder that notices a new responsible node sends it the value, so that repair does not depend on a
// single holder. A node that is no longer responsible drops the value after it has offered it to all
// responsible nodes.
void OverlayNode::repair() {
  std::vector<Value> out_of_sight;
  std::vector<Contact> holders;
  std::erase_if(store_.values(), [&](StoredValue& stored) {
    if (stored.cached) return false;
    holders.clear();
    routing_->responsible(stored.value.key, options_.replication, holders);
    if (!holders.empty()) return repair(stored, holders);
    if (out_of_sight.size() < kSentAwayAtOnce) out_of_sight.push_back(stored.value);
    return false;
  });
  // So many nodes have joined in between that these values need a search for their holders.
  for (const Value& value : out_of_sight) send_away(value, Purpose::kRepair, 0);
}

// Returns true if this node should drop the value.
bool OverlayNode::repair(StoredValue& stored, const std::vector<Contact>& holders) {
  bool everybody_has_it = true;
  bool own = false;
  for (const Contact& holder : holders) {
    if (holder.address == self_.address) {
      own = true;
    } else if (!contains(stored.holders, holder.address)) {
      everybody_has_it = false;
      push(stored, holders, holder);
    }
  }
  // Remembers only current holders: a node that returns after an absence has lost its values.
  std::erase_if(stored.holders, [&](Address address) {
    return std::none_of(holders.begin(), holders.end(),
                        [&](const Contact& holder) { return holder.address == address; });
  });
  return everybody_has_it && !own;
}

void OverlayNode::push(StoredValue& stored, const std::vector<Contact>& holders, const Contact& to) {
  Message& message = ask({.to = to, .use = Use::kRepair, .key = stored.value.key, .slot = stored.value.slot},
                         Kind::kStore, Purpose::kRepair);
  message.values.push_back(stored.value);
  message.contacts = holders;
}

void OverlayNode::pushed(const Pending& pending) {
  StoredValue* stored = store_.get(pending.key, pending.slot);
  if (stored == nullptr || contains(stored->holders, pending.to.address)) return;
  stored->holders.push_back(pending.to.address);
  std::vector<Contact> holders;
  routing_->responsible(pending.key, options_.replication, holders);
  const bool done =
      !holders.empty() && std::all_of(holders.begin(), holders.end(), [&](const Contact& holder) {
        return holder.address != self_.address && contains(stored->holders, holder.address);
      });
  if (done) store_.erase(pending.key, pending.slot);
}

void OverlayNode::leave(NodeStep& step) {
  step_ = &step;
  if (!member_) return;
  std::vector<Contact> holders;
  for (StoredValue& stored : store_.values()) {
    if (stored.cached || stored.value.expires <= step.now) continue;
    holders.clear();
    routing_->responsible(stored.value.key, options_.replication + 1, holders);
    std::erase_if(holders, [&](const Contact& c) { return c.address == self_.address; });
    if (holders.size() > options_.replication) holders.resize(options_.replication);
    for (const Contact& holder : holders) {
      if (contains(stored.holders, holder.address)) continue;
      Message& message = tell(holder, Kind::kStore, Purpose::kRepair);
      message.values.push_back(stored.value);
      message.contacts = holders;
    }
  }
  std::vector<Contact> neighbours;
  routing_->neighbours(neighbours);
  for (const Contact& neighbour : neighbours) tell(neighbour, Kind::kLeave, Purpose::kMaintenance);
}

}  // namespace fedge::dht
