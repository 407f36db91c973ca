#include "sim/directory/overlay_directory.h"

#include <cstring>
#include <utility>

namespace fedge::sim {
namespace {

std::uint64_t slot_of(const PublicKey& signer) {
  std::uint64_t slot = 0;
  for (std::size_t i = 0; i < sizeof slot; ++i) slot = slot << 8 | signer.bytes[i];
  return slot;
}

}  // namespace

dht::Id id_of(const dht::Key& key) {
  dht::Id id = 0;
  for (std::size_t i = 0; i < sizeof id; ++i) id = id << 8 | key[i];
  return id;
}

dht::Publication publication_of(const dht::Record& record) {
  return {.key = id_of(record.key),
          .slot = slot_of(record.signer),
          .sequence = record.sequence,
          .bytes = std::make_shared<const std::vector<std::byte>>(record.bytes),
          .expires = record.expires};
}

dht::StorePolicy keep_right_records(std::function<Time()> now) {
  return [now = std::move(now)](const dht::Value* present, const dht::Value& offered) {
    if (!offered.bytes || !dht::later_wins(present, offered)) return false;
    const auto claim = dht::read_claim(*offered.bytes);
    if (!claim || id_of(claim->key) != offered.key || slot_of(claim->signer) != offered.slot ||
        claim->sequence != offered.sequence)
      return false;
    return std::holds_alternative<dht::Record>(dht::open_record(claim->key, *offered.bytes, now()));
  };
}

OverlayDirectory::OverlayDirectory(OverlayNetwork& network, dht::Address node,
                                   const dht::RemoteOptions& limits)
    : RemoteDirectory(limits), network_(network), node_(node) {
  advance(network.now());
}

void OverlayDirectory::put(const dht::Record& record, Done done) {
  network_.publish(node_, publication_of(record), [done = std::move(done)](const dht::PublishResult& result) {
    // A holder that has this record or a later one refuses it, which also counts as stored.
    if (result.holders > 0 || result.refused > 0) return done({});
    done(Error{ErrorCode::kUnavailable, "no other directory node is reachable"});
  });
}

void OverlayDirectory::get(const dht::Key& key, Got got) {
  network_.lookup(node_, id_of(key), [got = std::move(got)](const dht::LookupResult& result) {
    Values values;
    for (const dht::Value& value : result.values)
      if (value.bytes) values.push_back(*value.bytes);
    const bool nobody = !result.ok && (result.aborted || !result.owner.known());
    if (nobody) return got(Error{ErrorCode::kUnavailable, "no other directory node answers"});
    got(values);
  });
}

}  // namespace fedge::sim
