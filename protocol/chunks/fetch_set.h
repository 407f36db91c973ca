// FetchSet: all fetches of one link, without a socket. Shares the link's credit between them in turn,
// so that a large object does not hold up a small one. An object may be exchanged instead: then chunks are
// asked for one by one, as a swarm picks them, within the same credit. Not thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>

#include "core/result.h"
#include "protocol/chunks/receiver.h"
#include "protocol/limits.h"

namespace fedge::protocol {

class FetchSet {
 public:
  explicit FetchSet(ChunkAmount window = {kFetchWindow, kMaxOutstandingChunks}) : window_(window) {}

  // What became of a fetch after a chunk or a refusal; the fetch is gone from the set. Or of chunks that were
  // picked: after each.
  struct Finished {
    ObjectId object{};
    Result<void> outcome;
    bool picked = false;
  };

  // kInvalid if this object is being fetched already or the manifest is not valid. True if the sink
  // has every chunk already: nothing was added.
  Result<bool> add(const Manifest& manifest, std::shared_ptr<ChunkSink> sink);
  // Forgets a fetch; the chunks under way still count until they have arrived.
  void cancel(const ObjectId& id);
  // From now on chunks of this object may be picked, until cancel(). `sink` gets them; what it has is not
  // looked at. kInvalid as add().
  Result<void> exchange(const Manifest& manifest, std::shared_ptr<ChunkSink> sink);
  // The request for this chunk of an object that is exchanged; nothing if there is no credit for it, or it is
  // under way already.
  std::optional<ChunkRequest> pick(const ObjectId& id, std::size_t chunk);

  // The next request to send; call until there is none.
  std::optional<ChunkRequest> next_request();
  // Length this chunk must have, known before its bytes arrive. kInvalid if it was not asked for.
  Result<std::size_t> expected_length(const Chunk& chunk) const;
  // A chunk for which expected_length() gave bytes.size(). A result if the fetch has ended with it.
  std::optional<Finished> receive(const Chunk& chunk, std::span<const std::byte> bytes);
  // kInvalid if these chunks were not under way: the peer breaks the protocol.
  Result<std::optional<Finished>> refuse(const ChunkRefused& refused);

  const ChunkAmount& outstanding() const { return outstanding_; }

 private:
  struct Fetch : ChunkReceiver {
    Fetch(const Manifest& manifest, std::shared_ptr<ChunkSink> sink, bool pick_alone)
        : ChunkReceiver(manifest, std::move(sink)), picked(pick_alone) {}
    bool picked;
  };
  using Fetches = std::list<Fetch>;
  Fetches::iterator find(const ObjectId& id);
  std::optional<Finished> after(Fetches::iterator fetch, const ChunkAmount& before, Result<void> outcome);

  ChunkAmount window_;
  ChunkAmount outstanding_;
  Fetches fetches_;  // whose turn it is first comes first
};

}  // namespace fedge::protocol
