// ChunkReceiver: the state of one fetch, without a socket. It says which chunks to ask for next, knows
// which are under way, and verifies each that arrives before the sink sees it. Chunks are asked for in
// ascending order, or as they are picked. One byte of memory a chunk.
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

// An amount of chunks: what credit is counted in.
struct ChunkAmount {
  std::size_t bytes = 0;
  std::size_t chunks = 0;
};

class ChunkReceiver {
 public:
  // `manifest` is valid; chunks the sink has are not asked for.
  ChunkReceiver(Manifest manifest, std::shared_ptr<ChunkSink> sink);

  const ObjectId& id() const { return id_; }
  const Manifest& manifest() const { return manifest_; }
  const ChunkAmount& outstanding() const { return outstanding_; }
  bool complete() const { return missing_ == 0; }
  bool abandoned() const { return sink_ == nullptr; }
  // Whether this chunk was asked for and is still to come.
  bool expects(std::size_t index) const {
    return index < states_.size() && states_[index] == State::kRequested;
  }

  // The next consecutive missing chunks that fit `credit`, now under way; nothing if none fits or
  // none is missing. `alone` lets a single chunk exceed the credit: nothing else is under way.
  std::optional<ChunkRequest> next_request(ChunkAmount credit, bool alone);
  // Asks for this chunk, which is not under way.
  ChunkRequest pick(std::size_t index);
  // A chunk that is expected. kCorrupt or the sink's error if it is no good; once abandoned, it is
  // only counted.
  Result<void> receive(std::size_t index, std::span<const std::byte> bytes);
  // Chunks that will not come; kInvalid if one of them was not under way.
  Result<void> refuse(std::size_t first, std::size_t count);
  // What is under way still arrives and must be counted, but nobody wants it.
  void abandon() { sink_.reset(); }
  // A new fetch of the same object: takes over what is under way.
  void resume(std::shared_ptr<ChunkSink> sink);

 private:
  enum class State : std::uint8_t { kMissing, kRequested, kHere };
  void settle(std::size_t index, State state);

  Manifest manifest_;
  ObjectId id_;
  std::shared_ptr<ChunkSink> sink_;
  std::vector<State> states_;
  std::size_t missing_ = 0;  // not here: missing or requested
  std::size_t next_ = 0;     // no chunk before it is kMissing
  ChunkAmount outstanding_;
};

}  // namespace fedge::protocol
