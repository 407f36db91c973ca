#include "dht/overlays/pastry.h"

#include <algorithm>
#include <utility>

namespace fedge::dht {
namespace {

constexpr std::size_t kPastryAlternatives = 3;
constexpr std::size_t kUsualEntries = 64;  // four rows with b = 4
constexpr std::uint32_t kTables = 0;       // the only tag: all replies hold contacts to consider

}  // namespace

Pastry::Pastry(const Contact& self, const OverlayOptions& options, Proximity proximity)
    : self_(self),
      options_(options.pastry),
      replication_(options.replication),
      proximity_(std::move(proximity)),
      probe_pace_(options.pastry.probe_leaves * options.maintenance_scale),
      row_pace_(options.pastry.fetch_row * options.maintenance_scale),
      leaves_(self, options.pastry.leaf_set) {
  table_.reserve(kUsualEntries);
}

void Pastry::clear() {
  leaves_.clear();
  table_.clear();
  neighbourhood_.clear();
  candidates_.clear();
}

Contact Pastry::entry(std::size_t row, std::size_t column) const {
  const std::size_t at = (row << options_.digit_bits) + column;
  return at < table_.size() ? table_[at] : Contact{};
}

template <class Visit>
void Pastry::for_each_known(Visit visit) const {
  for (const Contact& contact : leaves_.larger()) visit(contact);
  for (const Contact& contact : leaves_.smaller()) visit(contact);
  for (const Contact& contact : table_)
    if (contact.known()) visit(contact);
  for (const Contact& contact : neighbourhood_) visit(contact);
}

void Pastry::consider(const Contact& contact) {
  if (contact.address == self_.address || contact.id == self_.id) return;
  leaves_.consider(contact);
  consider_for_table(contact);
}

void Pastry::consider_for_table(const Contact& contact) {
  if (contact.address == self_.address || contact.id == self_.id) return;
  const std::size_t row = shared_prefix(self_.id, contact.id, options_.digit_bits);
  const std::size_t at = (row << options_.digit_bits) + digit(contact.id, row, options_.digit_bits);
  if (at >= table_.size()) table_.resize((row + 1) << options_.digit_bits);
  Contact& slot = table_[at];
  const auto delay = [&](const Contact& other) { return proximity_(self_.address, other.address); };
  if (!slot.known() || (slot.address != contact.address && delay(contact) < delay(slot))) slot = contact;
  if (options_.neighbourhood == 0 || contains(neighbourhood_, contact.address)) return;
  const auto place = std::find_if(neighbourhood_.begin(), neighbourhood_.end(),
                                  [&](const Contact& other) { return delay(other) > delay(contact); });
  neighbourhood_.insert(place, contact);
  if (neighbourhood_.size() > options_.neighbourhood) neighbourhood_.pop_back();
}

void Pastry::heard(const Contact& contact, bool /*ping*/, Host& /*host*/) { consider(contact); }

void Pastry::join(const Contact& bootstrap, Host& host) {
  host.find({.target = self_.id,
             .goal = Goal::kOwner,
             .purpose = Purpose::kJoin,
             .via = bootstrap,
             .want_tables = true});
}

// Ends a join. The new node has the contacts of the nodes on the way, and announces itself to all of them.
void Pastry::searched(std::uint32_t /*tag*/, const SearchOutcome& outcome, Host& host) {
  if (outcome.nodes.empty()) return host.joined(false);
  for (const Contact& contact : outcome.nodes) consider(contact);
  host.joined(true);
  std::vector<Contact> everybody;
  everyone(everybody);
  for (const Contact& contact : everybody) host.tell(contact, Kind::kNotify, Purpose::kJoin);
}

void Pastry::tick(Host& host) {
  if (leaves_.empty()) {
    // The nearest remaining contact leads back to the leaves; without contacts the node joins anew.
    Contact nearest;
    for_each_known([&](const Contact& contact) {
      if (!nearest.known() || numerically_closer(self_.id, contact.id, nearest.id)) nearest = contact;
    });
    if (!nearest.known()) return host.joined(false);
    host.request(nearest, Kind::kNeighbours, Purpose::kMaintenance, kTables);
    return;
  }
  for (unsigned due = probe_pace_.rounds_begin(); due > 0; --due) probe(host);
  for (unsigned due = row_pace_.rounds_begin(); due > 0; --due) fetch_row(host);
}

void Pastry::probe(Host& host) {
  std::vector<Contact> all;
  leaves_.all(all);
  std::vector<Contact> chosen;
  const auto choose = [&](const Contact& contact) {
    if (!contains(chosen, contact.address)) chosen.push_back(contact);
  };
  if (!leaves_.larger().empty()) choose(leaves_.larger().front());
  if (!leaves_.smaller().empty()) choose(leaves_.smaller().front());
  for (std::size_t tried = 0, before = chosen.size(); tried < all.size() && chosen.size() == before; ++tried)
    choose(all[next_leaf_++ % all.size()]);
  for (const Contact& contact : chosen)
    host.request(contact, Kind::kNeighbours, Purpose::kMaintenance, kTables);
}

Contact Pastry::any_in_row(std::size_t row, Host& host) const {
  const std::size_t width = std::size_t{1} << options_.digit_bits;
  const std::size_t first = host.rng().below(width);
  for (std::size_t i = 0; i < width; ++i)
    if (const Contact contact = entry(row, (first + i) % width); contact.known()) return contact;
  return {};
}

void Pastry::fetch_row(Host& host) {
  if (rows() == 0) return;
  const std::size_t row = host.rng().below(rows());
  const Contact contact = any_in_row(row, host);
  if (contact.known()) host.request(contact, Kind::kRow, Purpose::kMaintenance, kTables).key = row;
}

Found Pastry::route(Id key, std::vector<Contact>& out) const {
  const auto responsible_here = [&] {
    leaves_.closest(key, replication_, out);
    return out.front().address == self_.address ? Found::kResponsible : Found::kOwners;
  };
  if (leaves_.covers(key)) return responsible_here();
  const std::size_t row = shared_prefix(key, self_.id, options_.digit_bits);
  const Contact next = entry(row, digit(key, row, options_.digit_bits));
  if (next.known()) out.push_back(next);
  // The rare case; also alternatives if the entry is dead.
  const std::size_t begin = out.size();
  for_each_known([&](const Contact& contact) {
    if (contact.address == next.address || !numerically_closer(key, contact.id, self_.id)) return;
    if (shared_prefix(contact.id, key, options_.digit_bits) < row) return;
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto at = std::find_if(first, out.end(), [&](const Contact& other) {
      return !numerically_closer(key, other.id, contact.id);
    });
    if (at != out.end() && at->address == contact.address) return;
    if (at == out.end() && out.size() == kPastryAlternatives) return;
    out.insert(at, contact);
    if (out.size() > kPastryAlternatives) out.pop_back();
  });
  return out.empty() ? responsible_here() : Found::kCloser;
}

void Pastry::responsible(Id key, std::size_t count, std::vector<Contact>& out) const {
  if (leaves_.covers(key)) leaves_.closest(key, count, out);
}

void Pastry::add_row(std::size_t row, std::vector<Contact>& out) const {
  for (std::size_t column = 0; column < std::size_t{1} << options_.digit_bits; ++column)
    if (const Contact contact = entry(row, column); contact.known()) out.push_back(contact);
}

void Pastry::answer(const Message& request, Message& reply, Host& /*host*/) {
  std::vector<Contact>& out = reply.contacts;
  if (request.kind == Kind::kNeighbours) leaves_.all(out);
  if (request.kind == Kind::kRow) add_row(request.key, out);
  if (request.kind != Kind::kFind) return;
  // Join, section 2.4: the first node sends its neighbourhood, each node its row, and the last one its
  // leaves. A node sends further rows if the route to it was shorter than the shared prefix.
  if (request.hops == 0) out.insert(out.end(), neighbourhood_.begin(), neighbourhood_.end());
  const std::size_t shared = shared_prefix(self_.id, request.key, options_.digit_bits);
  for (std::size_t row = std::min<std::size_t>(request.hops, shared); row <= shared; ++row) add_row(row, out);
  if (reply.found == Found::kResponsible) leaves_.all(out);
}

void Pastry::replied(const Message& reply, std::uint32_t /*tag*/, Host& host) {
  std::erase(candidates_, reply.from.address);     // heard() has handled it
  const bool joining = reply.kind == Kind::kFind;  // no leaves yet: the owner's are good enough
  for (std::size_t i = reply.routed; i < reply.contacts.size(); ++i) {
    const Contact& contact = reply.contacts[i];
    if (host.suspected(contact.address)) continue;
    consider_for_table(contact);
    if (joining) {
      leaves_.consider(contact);
    } else if (candidates_.size() < leaves_.half() && leaves_.wants(contact) &&
               std::find(candidates_.begin(), candidates_.end(), contact.address) == candidates_.end()) {
      candidates_.push_back(contact.address);
      host.request(contact, Kind::kNeighbours, Purpose::kMaintenance, kTables);
    }
  }
}

void Pastry::silent(const Contact& contact, Host& host) {
  std::erase(candidates_, contact.address);
  std::erase_if(neighbourhood_, [&](const Contact& other) { return other.address == contact.address; });
  const std::size_t row = shared_prefix(self_.id, contact.id, options_.digit_bits);
  if (contact.id != self_.id) {
    const std::size_t at = (row << options_.digit_bits) + digit(contact.id, row, options_.digit_bits);
    if (at < table_.size() && table_[at].address == contact.address) {
      table_[at] = {};
      // Section 2.4: another node of the same row, or else of the next row, may know a replacement.
      Contact peer = any_in_row(row, host);
      if (!peer.known()) peer = any_in_row(row + 1, host);
      if (peer.known()) host.request(peer, Kind::kRow, Purpose::kMaintenance, kTables).key = row;
    }
  }
  const auto& larger = leaves_.larger();
  const bool above = contains(larger, contact.address);
  if (!leaves_.remove(contact.address)) return;
  // The farthest live leaf on that side knows the nodes beyond it.
  const auto& side = above ? larger : leaves_.smaller();
  const auto& other = above ? leaves_.smaller() : larger;
  if (!side.empty())
    host.request(side.back(), Kind::kNeighbours, Purpose::kMaintenance, kTables);
  else if (!other.empty())
    host.request(other.front(), Kind::kNeighbours, Purpose::kMaintenance, kTables);
}

void Pastry::everyone(std::vector<Contact>& out) const {
  for_each_known([&](const Contact& contact) {
    if (!contains(out, contact.address)) out.push_back(contact);
  });
}

void Pastry::neighbours(std::vector<Contact>& out) const { leaves_.all(out); }

std::size_t Pastry::contacts() const {
  std::vector<Contact> all;
  everyone(all);
  return all.size();
}

std::unique_ptr<Search> Pastry::make_search() const { return make_routed_search(); }

void Pastry::prefetch(Id /*from*/, Id /*key*/) const {
  for (std::size_t i = 0; i < leaves_.larger().size(); i += 4)
    __builtin_prefetch(leaves_.larger().data() + i);
  for (std::size_t i = 0; i < leaves_.smaller().size(); i += 4)
    __builtin_prefetch(leaves_.smaller().data() + i);
  for (std::size_t i = 0; i < table_.size(); i += 4) __builtin_prefetch(table_.data() + i);
}

void Pastry::fill(std::span<const Contact> everybody, Rng& /*rng*/) {
  clear();
  for (const Contact& contact : everybody) consider(contact);
}

}  // namespace fedge::dht
