#include "dht/overlays/kademlia.h"

#include <algorithm>

namespace fedge::dht {
namespace {

auto find(std::span<Contact> contacts, Address address) {
  return std::find_if(contacts.begin(), contacts.end(),
                      [&](const Contact& contact) { return contact.address == address; });
}

}  // namespace

Kademlia::Kademlia(const Contact& self, const OverlayOptions& options, const Identities& identities)
    : self_(self),
      options_(options.kademlia),
      protections_(options.protections),
      identities_(identities),
      refresh_ticks_(options.kademlia.refresh * options.maintenance_scale),
      ping_ticks_(options.kademlia.ping * options.maintenance_scale),
      contacts_(options_.k + kReplacements) {}

void Kademlia::clear() {
  for (Bucket& bucket : buckets_) bucket = {.row = bucket.row};
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

// Section 2.3: a new node refreshes the buckets farther away than its closest neighbour; here in sequence.
void Kademlia::refresh_from(unsigned index, Host& host) {
  if (index >= kIdBits) return;
  host.find({.target = random_in(index, host), .purpose = Purpose::kJoin, .tag = kJoinRefresh + index});
}

Id Kademlia::random_in(unsigned index, Host& host) const {
  const Id top = Id{1} << index;
  return self_.id ^ (top | (host.rng().next_u64() & (top - 1)));
}

void Kademlia::looked_for(Id target) {
  if (target != self_.id) bucket_of(index_of(target)).touched = ticks_;
}

void Kademlia::tick(Host& host) {
  ++ticks_;
  if (filled_ == 0) return host.joined(false);
  for (auto index = static_cast<unsigned>(std::countr_zero(filled_)); index < kIdBits; ++index)
    if (ticks_ - bucket_of(index).touched >= refresh_ticks_)
      host.find({.target = random_in(index, host), .tag = kRefresh});
}

void Kademlia::append_live(Bucket& bucket, const Contact& contact) {
  const std::size_t width = options_.k + kReplacements;
  if (bucket.row == 0) {
    bucket.row = static_cast<std::uint16_t>(contacts_.size() / width);
    contacts_.resize(contacts_.size() + width);
  }
  row_of(bucket)[bucket.live++] = contact;
}

bool Kademlia::crowded(std::span<const Contact> bucket, const Contact& newcomer) const {
  if (protections_.per_group == 0) return false;
  const std::uint32_t group = identities_.group(newcomer.address);
  const auto same = std::count_if(bucket.begin(), bucket.end(), [&](const Contact& contact) {
    return identities_.group(contact.address) == group;
  });
  return static_cast<std::size_t>(same) >= protections_.per_group;
}

void Kademlia::forget_replacement(Bucket& bucket, Address address) {
  const std::span<Contact> all = replacements(bucket);
  const auto at = find(all, address);
  if (at == all.end()) return;
  std::move(at + 1, all.end(), at);
  --bucket.replacements;
}

void Kademlia::heard(const Contact& contact, bool ping, Host& host) {
  if (contact.address == self_.address || contact.id == self_.id) return;
  const unsigned index = index_of(contact.id);
  Bucket& bucket = bucket_of(index);
  const std::span<Contact> known = live(bucket);
  const auto at = find(known, contact.address);
  if (at != known.end()) {
    std::rotate(at, at + 1, known.end());
    return;
  }
  forget_replacement(bucket, contact.address);
  if (crowded(known, contact)) return;
  if (bucket.live < options_.k) {
    if (bucket.live == 0) {
      filled_ |= Id{1} << index;
      // A random time of the first refresh spreads the lookups of the buckets.
      bucket.touched = ticks_ - host.rng().uniform() * refresh_ticks_ / 2;
    }
    append_live(bucket, contact);
    return;
  }
  if (!protections_.keep_old) {
    std::move(known.begin() + 1, known.end(), known.begin());
    known.back() = contact;
    return;
  }
  if (bucket.replacements == kReplacements) forget_replacement(bucket, replacements(bucket).front().address);
  row_of(bucket)[options_.k + bucket.replacements++] = contact;
  if (ping || bucket.pinging || ticks_ < bucket.ping_from) return;
  bucket.pinging = true;
  bucket.ping_from = ticks_ + ping_ticks_;
  host.request(known.front(), Kind::kPing, Purpose::kMaintenance, kPing + index);
}

// heard() has already moved the answering contact to the end of its bucket.
void Kademlia::replied(const Message& /*reply*/, std::uint32_t tag, Host& /*host*/) {
  if (tag >= kPing) bucket_of(tag - kPing).pinging = false;
}

void Kademlia::silent(const Contact& contact, Host& host) {
  if (contact.id == self_.id) return;
  const unsigned index = index_of(contact.id);
  Bucket& bucket = bucket_of(index);
  forget_replacement(bucket, contact.address);
  const std::span<Contact> known = live(bucket);
  const auto at = find(known, contact.address);
  if (at == known.end()) return;
  bucket.pinging = false;  // at worst another contact is pinged twice
  std::move(at + 1, known.end(), at);
  --bucket.live;
  while (bucket.replacements > 0 && bucket.live < options_.k) {
    const Contact next = replacements(bucket).back();
    --bucket.replacements;
    if (!host.suspected(next.address)) append_live(bucket, next);
  }
  if (bucket.live == 0) filled_ &= ~(Id{1} << index);
}

void Kademlia::closest(Id target, std::size_t count, std::vector<Contact>& out) const {
  const std::size_t goal = out.size() + count;
  // Appends a bucket; of one that exceeds the count, its closest contacts. Returns true when there are
  // enough.
  const auto add = [&](unsigned index) {
    const std::span<const Contact> contacts = bucket(index);
    const auto before = static_cast<std::ptrdiff_t>(out.size());
    out.insert(out.end(), contacts.begin(), contacts.end());
    if (out.size() <= goal) return out.size() == goal;
    std::nth_element(out.begin() + before, out.begin() + static_cast<std::ptrdiff_t>(goal) - 1, out.end(),
                     [&](const Contact& a, const Contact& b) {
                       return xor_distance(a.id, target) < xor_distance(b.id, target);
                     });
    out.resize(goal);
    return true;
  };
  // Visits buckets by distance from the target. First the bucket of its highest bit that differs from ours.
  // Then, of the lower ones, those where its bits differ, downwards, and those where they do not, upwards;
  // then the higher ones.
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
  for (const Bucket& bucket : buckets_) sum += std::size_t{bucket.live} + bucket.replacements;
  return sum;
}

std::unique_ptr<Search> Kademlia::make_search() const {
  XorSearchOptions options{.alpha = options_.alpha, .width = options_.k, .per_group = protections_.per_group};
  options.identities = &identities_;
  if (protections_.paths == 1) return make_xor_search(options);
  return make_disjoint_search(options, protections_.paths);
}

void Kademlia::prefetch(Id from, Id key) const {
  for (const Id id : {from, key}) {
    if (id == self_.id) continue;
    const std::span<const Contact> contacts = bucket(index_of(id));
    for (std::size_t i = 0; i < contacts.size(); i += 4) __builtin_prefetch(contacts.data() + i);
  }
}

// Fills each bucket from all nodes in its range, evenly spaced from a random start.
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
    Bucket& bucket = bucket_of(index);
    for (std::size_t i = 0; i < taken; ++i) {
      const Contact& contact = begin[static_cast<std::ptrdiff_t>((start + i * size / taken) % size)];
      if (!crowded(live(bucket), contact)) append_live(bucket, contact);
    }
    bucket.touched = -rng.uniform() * refresh_ticks_;
    filled_ |= Id{1} << index;
  }
}

}  // namespace fedge::dht
