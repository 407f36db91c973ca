// ChunkSender: what one link serves to its peer, without a socket. Keeps the peer's requests in the
// order they came and hands out one chunk at a time, when the link can write. Of objects that are exchanged
// its owner says which chunk goes out when. A peer that asks for more than its credit, or for chunks that do
// not exist, breaks the protocol. Not thread-safe.
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
  // Requests for this object wait until release() or withhold().
  void exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source);
  void stop_serving(const ObjectId& id);

  // The peer's request; a refusal to send back if the object is not served. The error ends the link.
  Result<std::optional<ChunkRefused>> request(const ChunkRequest& request);
  bool is_exchanged(const ObjectId& id) const;
  // The chunk goes out as soon as the link can write; or will not. False if the peer does not wait for it.
  bool release(const Chunk& chunk);
  bool withhold(const Chunk& chunk);
  // What to send next; nothing if nothing was asked for. It counts as answered.
  std::optional<Next> next();
  // The chunk just handed out could not be read: refuses it and the rest of its request.
  ChunkRefused give_up(const Due& due, const Error& error);

  // Asked for and not answered; and whether next() has one.
  const ChunkAmount& pending() const { return pending_; }
  bool ready() const { return !queue_.empty(); }

 private:
  struct Object {
    std::uint64_t payload_size = 0;
    std::uint32_t chunk_size = 0;
    std::uint32_t chunk_count = 0;
    std::shared_ptr<ChunkSource> source;  // null once it is no longer served
    bool exchanged = false;
    std::set<std::uint32_t> waiting = {};  // if it is exchanged
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
