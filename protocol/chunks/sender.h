// ChunkSender: the chunks that one link serves to its peer, without a socket. Queues the peer's requests
// and returns one chunk at a time, when the link can write. For exchanged objects the owner decides which
// chunk is sent when. A peer that exceeds its credit or requests chunks that do not exist violates the
// protocol. Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <variant>

#include "core/result.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/chunks/receiver.h"
#include "protocol/limits.h"

namespace fedge::protocol {

class ChunkSender {
 public:
  explicit ChunkSender(ChunkAmount window = {kFetchWindow, kMaxOutstandingChunks}) : window_(window) {}

  // A chunk to read from `source` and send.
  struct Due {
    Chunk chunk;
    std::size_t length = 0;
    std::shared_ptr<ChunkSource> source;
  };
  using Next = std::variant<Due, ChunkRefused>;

  void serve(const Manifest& manifest, std::shared_ptr<ChunkSource> source);
  // Like serve(), but requests wait until release() or withhold().
  void exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source);
  void stop_serving(const ObjectId& id);

  // Takes a request of the peer; returns a refusal to send if the object is not served. An error ends the
  // link.
  Result<std::optional<ChunkRefused>> request(const ChunkRequest& request);
  bool is_exchanged(const ObjectId& id) const;
  // Sends a waiting chunk as soon as the link can write, or refuses it. False if the peer does not wait for
  // it.
  bool release(const Chunk& chunk);
  bool withhold(const Chunk& chunk);
  // The next chunk or refusal to send, which then counts as answered; nothing if the queue is empty.
  std::optional<Next> next();
  // Refuses the chunk returned last, which could not be read, and the rest of its request.
  ChunkRefused give_up(const Due& due, const Error& error);

  // Amount requested and not answered; whether next() would return something.
  const ChunkAmount& pending() const { return pending_; }
  bool ready() const { return !queue_.empty(); }

 private:
  struct Object {
    std::uint64_t payload_size = 0;
    std::uint32_t chunk_size = 0;
    std::uint32_t chunk_count = 0;
    std::shared_ptr<ChunkSource> source;  // null after stop_serving()
    bool exchanged = false;
    std::set<std::uint32_t> waiting = {};  // requests of an exchanged object
    std::size_t length(std::uint64_t first, std::uint64_t count) const;
  };
  struct Pending {
    ChunkRequest rest;
    std::shared_ptr<Object> object;
  };
  void offer(const Manifest& manifest, std::shared_ptr<ChunkSource> source, bool exchanged);
  ChunkRefused drop_front(const Error& error);

  ChunkAmount window_;
  ChunkAmount pending_;
  std::map<ObjectId, std::shared_ptr<Object>> objects_;
  std::deque<Pending> queue_;
};

}  // namespace fedge::protocol
