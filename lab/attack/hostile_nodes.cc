#include "lab/attack/hostile_nodes.h"

#include <algorithm>

namespace fedge::lab {
namespace {

constexpr unsigned kFloodedBuckets = 16;  // the victim's farthest: all that thousands of nodes fill

}  // namespace

HostileNodes::HostileNodes(const AttackOptions& options, sim::OverlayNetwork& network, dht::Address first)
    : options_(options), network_(network), first_(first), rng_(Rng(options.seed).fork("hostile nodes")) {
  for (dht::Address address = first; address < network.size(); ++address)
    all_.push_back(network.node(address).self());
}

void HostileNodes::turn(dht::Id key) {
  key_ = key;
  for (const dht::Contact& node : all_)
    network_.set_answer(node.address, [this](const dht::Message& request, dht::Message& reply,
                                             const auto& honest) { return answer(request, reply, honest); });
}

// The id that the node claims. If ids are bound to keys, only its own.
dht::Id HostileNodes::claimed(const dht::Contact& self, dht::Id wanted, dht::Id distance) const {
  return options_.defence.overlay.bound_ids ? self.id : wanted ^ distance;
}

bool HostileNodes::answer(const dht::Message& request, dht::Message& reply,
                          const sim::OverlayNetwork::Honest& honest) {
  if (options_.attack == Attack::kReflect) return honest(request, reply);
  for (const dht::Value& value : request.values) first_seen_.try_emplace({value.key, value.slot}, value);
  if (options_.attack == Attack::kPoison) {  // act as normal holders except for the values that they return
    const bool answered = honest(request, reply);
    return lie_about_values(request, reply) || answered;
  }
  reply.from = request.to;  // under the id by which it was asked
  reply.accepted = true;
  if (request.kind == dht::Kind::kFind) name_accomplices(request, reply);
  return true;
}

// Half of them forge a later record, the others return only the first one that they saw.
bool HostileNodes::lie_about_values(const dht::Message& request, dht::Message& reply) {
  if (!request.want_values || request.key != key_) return false;
  const auto seen = first_seen_.lower_bound({key_, 0});
  if (seen == first_seen_.end() || seen->first.first != key_) return false;
  dht::Value lie = seen->second;
  if (request.to.address % 2 == 0) {
    std::vector<std::byte> bytes = *lie.bytes;
    bytes[bytes.size() / 2] ^= std::byte{1};
    lie.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    lie.sequence += 1'000'000;
  }
  lie.expires = network_.now() + std::chrono::hours{1};
  reply.retry = false;
  reply.values = {lie};
  reply.found = dht::Found::kOwners;
  return true;
}

void HostileNodes::name_accomplices(const dht::Message& request, dht::Message& reply) {
  const std::size_t count = std::min(options_.nodes, std::size_t{20});
  reply.found = dht::Found::kCloser;
  if (options_.defence.overlay.bound_ids) {
    reply.contacts = all_;
    const auto nearer = [&](const dht::Contact& a, const dht::Contact& b) {
      return dht::xor_distance(a.id, request.key) < dht::xor_distance(b.id, request.key);
    };
    if (reply.contacts.size() > count) {
      std::nth_element(reply.contacts.begin(), reply.contacts.begin() + static_cast<std::ptrdiff_t>(count),
                       reply.contacts.end(), nearer);
      reply.contacts.resize(count);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {  // the closest id that each can claim
      const dht::Contact& accomplice = all_[rng_.below(all_.size())];
      reply.contacts.push_back(
          {claimed(accomplice, request.key, 1 + rng_.below(1 << 20)), accomplice.address});
    }
  }
  reply.routed = static_cast<std::uint16_t>(reply.contacts.size());
}

void HostileNodes::flood(const dht::Contact& victim) {
  for (const dht::Contact& node : all_) {
    const unsigned bucket =
        static_cast<unsigned>(dht::kIdBits) - 1 - static_cast<unsigned>(rng_.below(kFloodedBuckets));
    const dht::Id top = dht::Id{1} << bucket;
    dht::Message ping;
    ping.from = {claimed(node, victim.id, top | (rng_.next_u64() & (top - 1))), node.address};
    ping.to = victim;
    ping.kind = dht::Kind::kPing;
    ping.purpose = dht::Purpose::kMaintenance;
    ping.token =
        network_.node(victim.address).token_of(node.address);  // its own: it has contacted the victim
    network_.inject(ping);
  }
}

void HostileNodes::leave_rubbish(std::size_t bytes) {
  const auto rubbish = std::make_shared<const std::vector<std::byte>>(bytes, std::byte{0x5A});
  for (const dht::Contact& node : all_) {
    const auto to = static_cast<dht::Address>(rng_.below(first_));
    dht::Message store;
    store.from = node;
    store.to = network_.node(to).self();
    store.kind = dht::Kind::kStore;
    store.purpose = dht::Purpose::kPublish;
    store.token = network_.node(to).token_of(node.address);
    store.values.push_back({.key = rng_.next_u64(),
                            .slot = rng_.next_u64(),
                            .sequence = 1,
                            .expires = network_.now() + std::chrono::hours{1},
                            .bytes = rubbish});
    network_.inject(store);
  }
}

std::size_t HostileNodes::reflect(const dht::Contact& victim, const std::vector<dht::Contact>& holders) {
  std::size_t sent = 0;
  for (std::size_t i = 0; i < all_.size() && !holders.empty(); ++i) {
    dht::Message request;
    request.from = victim;
    request.to = holders[rng_.below(holders.size())];
    request.kind = dht::Kind::kFind;
    request.purpose = dht::Purpose::kLookup;
    request.key = key_;
    request.want_values = true;
    sent += request.bytes();
    network_.inject(request);
  }
  return sent;
}

}  // namespace fedge::lab
