#include "sim/overlays/kademlia.h"

#include <algorithm>

namespace fedge::sim {
namespace {

auto find(std::vector<Contact>& contacts, Address address) {
  return std::find_if(contacts.begin(), contacts.end(),
                      [&](const Contact& contact) { return contact.address == address; });
}

}  // namespace

Kademlia::Kademlia(const Contact& self, const OverlayOptions& options)
    : self_(self),
      options_(options.kademlia),
      refresh_ticks_(options.kademlia.refresh * options.maintenance_scale),
      ping_ticks_(options.kademlia.ping * options.maintenance_scale),
      buckets_(kIdBits) {}

void Kademlia::clear() {
  for (Bucket& bucket : buckets_) bucket = {};
  filled_ = 0;
  ticks_ = 0;
}

void Kademlia::join(const Contact& bootstrap, Host& host) {
  heard(bootstrap, true, host);
  host.find({.target = self_.id, .purpose = Purpose::kJoin, .tag = kJoin});
}

void Kademlia::searched(std::uint32_t tag, const SearchOutcome& outcome, Host& host) {
  if (tag >= kJoinRefresh) return refresh_from(tag - kJoinRefresh + 1, host);
  if (tag != kJoin) return;
  std::vector<Contact> closest = outcome.nodes;
  std::erase_if(closest, [&](const Contact& contact) { return contact.address == self_.address; });
  if (closest.empty()) return host.joined(false);
  host.joined(true);
  for (const Contact& contact : closest) host.tell(contact, Kind::kNotify, Purpose::kJoin);
  refresh_from(index_of(closest.front().id) + 1, host);
}

// Section 2.3: the newcomer refreshes the buckets farther away than its closest neighbour, here one after the
// other.
void Kademlia::refresh_from(unsigned index, Host& host) {
  if (index >= kIdBits) return;
  host.find({.target = random_in(index, host), .purpose = Purpose::kJoin, .tag = kJoinRefresh + index});
}

Id Kademlia::random_in(unsigned index, Host& host) const {
  const Id top = Id{1} << index;
  return self_.id ^ (top | (host.rng().next_u64() & (top - 1)));
}

void Kademlia::looked_for(Id target) {
  if (target != self_.id) buckets_[index_of(target)].touched = ticks_;
}

void Kademlia::tick(Host& host) {
  ++ticks_;
  if (filled_ == 0) return host.joined(false);
  for (auto index = static_cast<unsigned>(std::countr_zero(filled_)); index < kIdBits; ++index)
    if (ticks_ - buckets_[index].touched >= refresh_ticks_)
      host.find({.target = random_in(index, host), .tag = kRefresh});
}

void Kademlia::heard(const Contact& contact, bool ping, Host& host) {
  if (contact.address == self_.address || contact.id == self_.id) return;
  const unsigned index = index_of(contact.id);
  Bucket& bucket = buckets_[index];
  const auto at = find(bucket.live, contact.address);
  if (at != bucket.live.end()) {
    std::rotate(at, at + 1, bucket.live.end());
    return;
  }
  const auto spare = find(bucket.replacements, contact.address);
  if (spare != bucket.replacements.end()) bucket.replacements.erase(spare);
  if (bucket.live.size() < options_.k) {
    if (bucket.live.empty()) {
      filled_ |= Id{1} << index;
      // A first refresh at a moment of its own, so that a bucket's lookups do not come all at once.
      bucket.touched = ticks_ - host.rng().uniform() * refresh_ticks_ / 2;
    }
    bucket.live.push_back(contact);
    return;
  }
  if (bucket.replacements.size() == kReplacements) bucket.replacements.erase(bucket.replacements.begin());
  bucket.replacements.push_back(contact);
  if (ping || bucket.pinging || ticks_ < bucket.ping_from) return;
  bucket.pinging = true;
  bucket.ping_from = ticks_ + ping_ticks_;
  host.request(bucket.live.front(), Kind::kPing, Purpose::kMaintenance, kPing + index);
}

// heard() has moved who answered to the end of its bucket.
void Kademlia::replied(const Message& /*reply*/, std::uint32_t tag, Host& /*host*/) {
  if (tag >= kPing) buckets_[tag - kPing].pinging = false;
}

void Kademlia::silent(const Contact& contact, Host& host) {
  if (contact.id == self_.id) return;
  const unsigned index = index_of(contact.id);
  Bucket& bucket = buckets_[index];
  const auto spare = find(bucket.replacements, contact.address);
  if (spare != bucket.replacements.end()) bucket.replacements.erase(spare);
  const auto at = find(bucket.live, contact.address);
  if (at == bucket.live.end()) return;
  bucket.pinging = false;  // if it was another that was pinged, one ping more does no harm
  bucket.live.erase(at);
  while (!bucket.replacements.empty() && bucket.live.size() < options_.k) {
    const Contact next = bucket.replacements.back();
    bucket.replacements.pop_back();
    if (!host.suspected(next.address)) bucket.live.push_back(next);
  }
  if (bucket.live.empty()) filled_ &= ~(Id{1} << index);
}

void Kademlia::closest(Id target, std::size_t count, std::vector<Contact>& out) const {
  const std::size_t goal = out.size() + count;
  // Appends a bucket; of the one that is too much, its closest. True when there are enough.
  const auto add = [&](unsigned index) {
    const std::vector<Contact>& live = buckets_[index].live;
    const auto before = static_cast<std::ptrdiff_t>(out.size());
    out.insert(out.end(), live.begin(), live.end());
    if (out.size() <= goal) return out.size() == goal;
    std::nth_element(out.begin() + before, out.begin() + static_cast<std::ptrdiff_t>(goal) - 1, out.end(),
                     [&](const Contact& a, const Contact& b) {
                       return xor_distance(a.id, target) < xor_distance(b.id, target);
                     });
    out.resize(goal);
    return true;
  };
  // Buckets by distance from the target: where its highest bit that differs from ours is; below that, those
  // where its bits differ, downwards, and where they do not, upwards; and then the ones beyond.
  const Id difference = xor_distance(self_.id, target);
  const unsigned top = difference == 0 ? 0 : magnitude(difference);
  const Id below = difference == 0 ? 0 : (Id{1} << top) - 1;
  if (difference != 0 && (filled_ >> top & 1) != 0 && add(top)) return;
  for (Id rest = filled_ & difference & below; rest != 0; rest &= ~(Id{1} << magnitude(rest)))
    if (add(magnitude(rest))) return;
  for (Id rest = filled_ & ~difference & below; rest != 0; rest &= rest - 1)
    if (add(static_cast<unsigned>(std::countr_zero(rest)))) return;
  const Id beyond = difference == 0 ? filled_ : filled_ & ~below & ~(Id{1} << top);
  for (Id rest = beyond; rest != 0; rest &= rest - 1)
    if (add(static_cast<unsigned>(std::countr_zero(rest)))) return;
}

Found Kademlia::route(Id key, std::vector<Contact>& out) const {
  closest(key, options_.k, out);
  return Found::kCloser;
}

void Kademlia::responsible(Id key, std::size_t count, std::vector<Contact>& out) const {
  closest(key, count, out);
  out.push_back(self_);
  std::sort(out.begin(), out.end(), [&](const Contact& a, const Contact& b) {
    return xor_distance(a.id, key) < xor_distance(b.id, key);
  });
  if (out.size() > count) out.resize(count);
}

void Kademlia::neighbours(std::vector<Contact>& out) const { closest(self_.id, options_.k, out); }

std::size_t Kademlia::contacts() const {
  std::size_t sum = 0;
  for (const Bucket& bucket : buckets_) sum += bucket.live.size() + bucket.replacements.size();
  return sum;
}

std::unique_ptr<Search> Kademlia::make_search() const { return make_xor_search(options_.alpha, options_.k); }

void Kademlia::prefetch(Id from, Id key) const {
  for (const Id id : {from, key}) {
    if (id == self_.id) continue;
    const std::vector<Contact>& live = buckets_[index_of(id)].live;
    for (std::size_t i = 0; i < live.size(); i += 4) __builtin_prefetch(live.data() + i);
  }
}

// From each bucket's share of everybody, evenly, beginning at a random one.
void Kademlia::fill(std::span<const Contact> everybody, Rng& rng) {
  clear();
  const auto by_id = [](const Contact& contact, Id id) { return contact.id < id; };
  for (unsigned index = 0; index < kIdBits; ++index) {
    const Id first = (self_.id ^ (Id{1} << index)) >> index << index;
    const Id last = first + ((Id{1} << index) - 1);
    const auto begin = std::lower_bound(everybody.begin(), everybody.end(), first, by_id);
    auto end = std::lower_bound(begin, everybody.end(), last, by_id);
    if (end != everybody.end() && end->id == last) ++end;
    const auto size = static_cast<std::size_t>(end - begin);
    if (size == 0) continue;
    const std::size_t taken = std::min(size, options_.k);
    const std::size_t start = rng.below(size);
    for (std::size_t i = 0; i < taken; ++i)
      buckets_[index].live.push_back(begin[static_cast<std::ptrdiff_t>((start + i * size / taken) % size)]);
    buckets_[index].touched = -rng.uniform() * refresh_ticks_;
    filled_ |= Id{1} << index;
  }
}

}  // namespace fedge::sim
