// FetchSet: all fetches of one link, without a socket. Shares the link's credit round robin, so that a
// large object does not delay a small one. An object may instead be exchanged: a swarm then picks each
// chunk to request, within the same credit. Not thread-safe.
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

  // The outcome of a fetch, which has been removed from the set. For an exchanged object: the outcome of
  // one chunk (`picked`).
  struct Finished {
    ObjectId object{};
    Result<void> outcome;
    bool picked = false;
  };

  // kInvalid if this object is being fetched already or the manifest is invalid. True if the sink has every
  // chunk already; then nothing is added.
  Result<bool> add(const Manifest& manifest, std::shared_ptr<ChunkSink> sink);
  // Removes a fetch; its outstanding chunks count until they have arrived.
  void cancel(const ObjectId& id);
  // Allows pick() for this object until cancel(). `sink` receives the chunks; its has() is not called.
  // kInvalid as for add().
  Result<void> exchange(const Manifest& manifest, std::shared_ptr<ChunkSink> sink);
  // The request for this chunk of an exchanged object; nothing if there is no credit for it or the chunk is
  // outstanding already.
  std::optional<ChunkRequest> pick(const ObjectId& id, std::size_t chunk);

  // The next request to send; call it until it returns nothing.
  std::optional<ChunkRequest> next_request();
  // The length that this chunk must have, known before its bytes arrive. kInvalid if it was not requested.
  Result<std::size_t> expected_length(const Chunk& chunk) const;
  // Takes a chunk whose size is expected_length(). Returns the outcome if this ends the fetch.
  std::optional<Finished> receive(const Chunk& chunk, std::span<const std::byte> bytes);
  // kInvalid if these chunks were not outstanding: the peer violates the protocol.
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
  Fetches fetches_;  // the next in turn first
};

}  // namespace fedge::protocol
