// The table of overlays: names, routing tables, owners, and limits of their options.
#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/crypto/sha256.h"
#include "dht/overlays/chord.h"
#include "dht/overlays/kademlia.h"
#include "dht/overlays/pastry.h"

namespace fedge::dht {
namespace {

Contact chord_owner(const std::vector<Contact>& members, Id key) {
  const auto at = std::lower_bound(members.begin(), members.end(), key,
                                   [](const Contact& contact, Id id) { return contact.id < id; });
  return at == members.end() ? members.front() : *at;
}

// The closer of the two members around the key.
Contact pastry_owner(const std::vector<Contact>& members, Id key) {
  const auto at = std::lower_bound(members.begin(), members.end(), key,
                                   [](const Contact& contact, Id id) { return contact.id < id; });
  const Contact& above = at == members.end() ? members.front() : *at;
  const Contact& below = at == members.begin() ? members.back() : *(at - 1);
  return numerically_closer(key, above.id, below.id) ? above : below;
}

// Descends the tree of ids, towards the key wherever that side has members.
Contact kademlia_owner(const std::vector<Contact>& members, Id key) {
  auto begin = members.begin();
  auto end = members.end();
  Id prefix = 0;
  for (unsigned bit = kIdBits; bit-- > 0 && end - begin > 1;) {
    const Id half = Id{1} << bit;
    const auto middle = std::lower_bound(begin, end, prefix | half,
                                         [](const Contact& contact, Id id) { return contact.id < id; });
    const bool upper = middle == begin || ((key & half) != 0 && middle != end);
    (upper ? begin : end) = middle;
    if (upper) prefix |= half;
  }
  return *begin;
}

}  // namespace

Id key_of(std::string_view name) {
  const Digest digest = sha256(name);
  Id id = 0;
  for (std::size_t i = 0; i < sizeof id; ++i) id = id << 8 | digest[i];
  return id;
}

const char* to_string(OverlayKind kind) {
  switch (kind) {
    case OverlayKind::kChord:
      return "chord";
    case OverlayKind::kPastry:
      return "pastry";
    case OverlayKind::kKademlia:
      return "kademlia";
  }
  return "";
}

Result<OverlayKind> overlay_kind(const std::string& name) {
  for (const OverlayKind kind : {OverlayKind::kChord, OverlayKind::kPastry, OverlayKind::kKademlia})
    if (name == to_string(kind)) return kind;
  return invalid("--kind must be chord, pastry or kademlia, not \"" + name + "\"");
}

std::unique_ptr<Routing> make_routing(const Contact& self, const OverlayOptions& options,
                                      const Proximity& proximity, const Identities& identities) {
  switch (options.kind) {
    case OverlayKind::kChord:
      return std::make_unique<Chord>(self, options);
    case OverlayKind::kPastry:
      return std::make_unique<Pastry>(self, options, proximity);
    case OverlayKind::kKademlia:
      return std::make_unique<Kademlia>(self, options, identities);
  }
  FEDGE_CHECK(false, "an overlay of no known kind");
}

Contact global_owner(OverlayKind kind, const std::vector<Contact>& members, Id key) {
  FEDGE_CHECK(!members.empty(), "nobody is responsible in an empty network");
  if (kind == OverlayKind::kChord) return chord_owner(members, key);
  return kind == OverlayKind::kPastry ? pastry_owner(members, key) : kademlia_owner(members, key);
}

Result<void> check_options(const OverlayOptions& options) {
  struct Period {
    const char* option;
    double value;
  };
  const Period periods[] = {{"--stabilize", options.chord.stabilize},
                            {"--fix-finger", options.chord.fix_finger},
                            {"--check-predecessor", options.chord.check_predecessor},
                            {"--probe-leaves", options.pastry.probe_leaves},
                            {"--fetch-row", options.pastry.fetch_row},
                            {"--refresh", options.kademlia.refresh},
                            {"--ping", options.kademlia.ping},
                            {"--republish", options.republish},
                            {"--repair", options.repair},
                            {"--maintenance-scale", options.maintenance_scale}};
  for (const Period& period : periods)
    if (!(period.value >= 0.01 && period.value <= 1e6))
      return invalid(must_be(period.option, "from 0.01 to 1000000"));
  if (options.replication < 1 || options.replication > 8) return invalid(must_be("--replication", "1 to 8"));
  if (!(options.loss >= 0 && options.loss < 1))
    return invalid(must_be("--loss", "a probability of at least 0 and below 1"));
  if (options.chord.successors < options.replication || options.chord.successors > 64)
    return invalid(must_be("--successors", "at least --replication and at most 64"));
  const unsigned bits = options.pastry.digit_bits;
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8)
    return invalid(must_be("--digit-bits", "1, 2, 4 or 8"));
  const std::size_t leaves = options.pastry.leaf_set;
  if (leaves % 2 != 0 || leaves < 2 || leaves < options.replication || leaves > 128)
    return invalid(
        must_be("--leaf-set", "an even number of at least 2, at least --replication and at most 128"));
  if (options.pastry.neighbourhood > 128) return invalid(must_be("--neighbourhood", "at most 128"));
  if (options.kademlia.k < options.replication || options.kademlia.k > 128)
    return invalid(must_be("--k", "at least --replication and at most 128"));
  if (options.protections.paths < 1 || options.protections.paths > options.kademlia.k)
    return invalid(must_be("--paths", "at least 1 and at most --k"));
  if (options.kademlia.alpha < 1 || options.kademlia.alpha > options.kademlia.k)
    return invalid(must_be("--alpha", "at least 1 and at most --k"));
  return {};
}

}  // namespace fedge::dht
