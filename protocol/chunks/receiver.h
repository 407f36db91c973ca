// ChunkReceiver: the state of one fetch, without a socket. Decides which chunks to request next, tracks
// those outstanding, and verifies each before the sink gets it. Requests chunks in ascending order, or as
// they are picked. Memory: one byte for each chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/result.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::protocol {

// An amount of chunks; credit is counted in both.
struct ChunkAmount {
  std::size_t bytes = 0;
  std::size_t chunks = 0;
};

class ChunkReceiver {
 public:
  // `manifest` must be valid; chunks that the sink has are not requested.
  ChunkReceiver(Manifest manifest, std::shared_ptr<ChunkSink> sink);

  const ObjectId& id() const { return id_; }
  const Manifest& manifest() const { return manifest_; }
  const ChunkAmount& outstanding() const { return outstanding_; }
  bool complete() const { return missing_ == 0; }
  bool abandoned() const { return sink_ == nullptr; }
  // Whether this chunk was requested and has not arrived.
  bool expects(std::size_t index) const {
    return index < states_.size() && states_[index] == State::kRequested;
  }

  // Requests the next consecutive missing chunks that fit `credit`; nothing if none fits or none is
  // missing. `alone` lets a single chunk exceed the credit, for when nothing else is outstanding.
  std::optional<ChunkRequest> next_request(ChunkAmount credit, bool alone);
  // Requests this chunk, which must not be outstanding.
  ChunkRequest pick(std::size_t index);
  // Takes an expected chunk. Returns kCorrupt or the sink's error if it cannot be stored; after abandon()
  // the chunk is only counted.
  Result<void> receive(std::size_t index, std::span<const std::byte> bytes);
  // Chunks that the peer will not send; kInvalid if one of them was not outstanding.
  Result<void> refuse(std::size_t first, std::size_t count);
  // Stops storing: outstanding chunks still arrive and are counted.
  void abandon() { sink_.reset(); }
  // Starts a new fetch of the same object; it takes over the outstanding chunks.
  void resume(std::shared_ptr<ChunkSink> sink);

 private:
  enum class State : std::uint8_t { kMissing, kRequested, kHere };
  void settle(std::size_t index, State state);

  Manifest manifest_;
  ObjectId id_;
  std::shared_ptr<ChunkSink> sink_;
  std::vector<State> states_;
  std::size_t missing_ = 0;  // missing or requested
  std::size_t next_ = 0;     // no chunk before it is kMissing
  ChunkAmount outstanding_;
};

}  // namespace fedge::protocol
