#include "dht/overlays/values/publisher.h"

#include <algorithm>
#include <utility>

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

Publisher::Publisher(Address self, const OverlayOptions& options, const Routing& routing, StorePolicy policy)
    : self_(self),
      options_(options),
      routing_(routing),
      repair_pace_(options.repair),
      store_(options.store, std::move(policy)) {}

void Publisher::clear() {
  store_.clear();
  for (Publishing& publishing : publishings_) publishing.busy = false;
  standing_.clear();
}

void Publisher::publish(const Publication& publication, Operation operation, bool member,
                        PublisherHost& host) {
  withdraw(publication.key, publication.slot);
  standing_.push_back({publication, Pace(options_.republish), member ? 0 : operation});
  if (member) begin(standing_.back(), operation, host);
}

void Publisher::withdraw(Id key, std::uint64_t slot) {
  std::erase_if(standing_, [&](const Standing& standing) {
    return standing.publication.key == key && standing.publication.slot == slot;
  });
}

void Publisher::tick(PublisherHost& host) {
  std::erase_if(standing_, [&](const Standing& standing) {
    return standing.publication.expires && *standing.publication.expires <= host.now();
  });
  for (Standing& standing : standing_) {
    const bool due = standing.pace.rounds_begin() > 0;
    if (due || standing.first != 0 || std::exchange(standing.again, false))
      begin(standing, std::exchange(standing.first, 0), host);
  }
  if (repair_pace_.rounds_begin() == 0) return;
  store_.expire(host.now());
  repair(host);
}

void Publisher::begin(const Standing& standing, Operation operation, PublisherHost& host) {
  const Publication& what = standing.publication;
  const Duration life = seconds(to_seconds(options_.round) * options_.republish * kLifetimes);
  const Time expires = what.expires.value_or(host.now() + life);
  send_away({what.key, what.slot, what.sequence, expires, what.bytes}, Purpose::kPublish, operation, host);
}

// Sends the value to its responsible nodes.
void Publisher::send_away(const Value& value, Purpose purpose, Operation operation, PublisherHost& host) {
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
                .started = host.now()};
  host.find_holders(value.key, purpose, static_cast<std::uint32_t>(index));
}

void Publisher::found(std::uint32_t tag, const std::vector<Contact>& nodes, PublisherHost& host) {
  Publishing& publishing = publishings_[tag];
  std::vector<Contact> holders(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                  nodes.size(), options_.replication)));
  publishing.moved = publishing.purpose == Purpose::kRepair;
  for (const Contact& holder : holders) {
    if (holder.address == self_) {
      publishing.moved = false;  // this node is responsible after all
      StoredValue* stored = store_.offer(publishing.value, host.now());
      if (stored != nullptr) {
        stored->holders = addresses_of(holders);
        stored->cached = false;
      }
      ++(stored != nullptr ? publishing.result.holders : publishing.result.refused);
      continue;
    }
    Message& message =
        host.ask({.to = holder, .use = RequestUse::kStore, .tag = tag, .generation = publishing.generation},
                 Kind::kStore, publishing.purpose);
    message.values.push_back(publishing.value);
    message.contacts = holders;
    ++publishing.waiting;
  }
  if (publishing.waiting == 0) finish(tag, host);
}

void Publisher::stored(const OpenRequest& request, bool answered, bool accepted, PublisherHost& host) {
  Publishing& publishing = publishings_[request.tag];
  if (!publishing.busy || publishing.generation != request.generation) return;
  if (answered) ++(accepted ? publishing.result.holders : publishing.result.refused);
  if (--publishing.waiting == 0) finish(request.tag, host);
}

void Publisher::finish(std::size_t index, PublisherHost& host) {
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
  publishing.result.latency = host.now() - publishing.started;
  if (publishing.operation != 0) host.published(publishing.result);
}

bool Publisher::take(const Message& message, Time now) {
  bool all = !message.values.empty();
  for (const Value& value : message.values) {
    StoredValue* stored = store_.get(value.key, value.slot);
    const bool had = stored != nullptr && !stored->cached;
    stored = store_.offer(value, now);
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
void Publisher::repair(PublisherHost& host) {
  std::vector<Value> out_of_sight;
  std::vector<Contact> holders;
  std::erase_if(store_.values(), [&](StoredValue& stored) {
    if (stored.cached) return false;
    holders.clear();
    routing_.responsible(stored.value.key, options_.replication, holders);
    if (!holders.empty()) return repair(stored, holders, host);
    if (out_of_sight.size() < kSentAwayAtOnce) out_of_sight.push_back(stored.value);
    return false;
  });
  // So many nodes have joined in between that these values need a search for their holders.
  for (const Value& value : out_of_sight) send_away(value, Purpose::kRepair, 0, host);
}

// Returns true if this node should drop the value.
bool Publisher::repair(StoredValue& stored, const std::vector<Contact>& holders, PublisherHost& host) {
  bool everybody_has_it = true;
  bool own = false;
  for (const Contact& holder : holders) {
    if (holder.address == self_) {
      own = true;
    } else if (!contains(stored.holders, holder.address)) {
      everybody_has_it = false;
      Message& message = host.ask(
          {.to = holder, .use = RequestUse::kRepair, .key = stored.value.key, .slot = stored.value.slot},
          Kind::kStore, Purpose::kRepair);
      message.values.push_back(stored.value);
      message.contacts = holders;
    }
  }
  // Remembers only current holders: a node that returns after an absence has lost its values.
  std::erase_if(stored.holders, [&](Address address) {
    return std::none_of(holders.begin(), holders.end(),
                        [&](const Contact& holder) { return holder.address == address; });
  });
  return everybody_has_it && !own;
}

void Publisher::pushed(const OpenRequest& request) {
  StoredValue* stored = store_.get(request.key, request.slot);
  if (stored == nullptr || contains(stored->holders, request.to.address)) return;
  stored->holders.push_back(request.to.address);
  std::vector<Contact> holders;
  routing_.responsible(request.key, options_.replication, holders);
  const bool done =
      !holders.empty() && std::all_of(holders.begin(), holders.end(), [&](const Contact& holder) {
        return holder.address != self_ && contains(stored->holders, holder.address);
      });
  if (done) store_.erase(request.key, request.slot);
}

void Publisher::leave(PublisherHost& host) {
  std::vector<Contact> holders;
  for (StoredValue& stored : store_.values()) {
    if (stored.cached || stored.value.expires <= host.now()) continue;
    holders.clear();
    routing_.responsible(stored.value.key, options_.replication + 1, holders);
    std::erase_if(holders, [&](const Contact& c) { return c.address == self_; });
    if (holders.size() > options_.replication) holders.resize(options_.replication);
    for (const Contact& holder : holders) {
      if (contains(stored.holders, holder.address)) continue;
      Message& message = host.tell(holder, Kind::kStore, Purpose::kRepair);
      message.values.push_back(stored.value);
      message.contacts = holders;
    }
  }
}

}  // namespace fedge::dht
