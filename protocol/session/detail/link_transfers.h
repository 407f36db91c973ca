// LinkTransfers: the chunks that one link fetches, serves and exchanges, and whom to tell about them.
// FetchSet and ChunkSender decide; this class keeps the owners' callbacks beside them. No socket: the link
// sends the requests and refusals that it returns. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "protocol/chunks/fetch_set.h"
#include "protocol/chunks/sender.h"
#include "protocol/session/link.h"

namespace fedge::protocol {

class LinkTransfers {
 public:
  using Done = std::function<void(Result<void>)>;
  using Finished = FetchSet::Finished;

  // --- for the link's owner ---
  // Begins a fetch, or returns the call that ends it, if the sink has every chunk already. The call does
  // nothing if the fetch was cancelled meanwhile; this object must outlive it.
  Result<std::function<void()>> fetch(const Manifest& manifest, std::shared_ptr<ChunkSink> sink,
                                      std::shared_ptr<Done> done);
  void cancel_fetch(const ObjectId& id);
  void serve(const Manifest& manifest, std::shared_ptr<ChunkSource> source);
  void stop_serving(const ObjectId& id) { sender_.stop_serving(id); }
  Result<void> exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source,
                        std::shared_ptr<ChunkSink> sink, ExchangeCallbacks callbacks);
  // Returns false if the object is not exchanged.
  bool end_exchange(const ObjectId& id);
  // The request for this chunk of an exchanged object; nothing if it is not exchanged or has no credit.
  std::optional<ChunkRequest> pick(const Chunk& chunk);
  bool release(const Chunk& chunk) { return sender_.release(chunk); }
  bool withhold(const Chunk& chunk) { return sender_.withhold(chunk); }

  // --- received frames; an error ends the link ---
  // Checks a chunk's header before memory is allocated for its payload.
  Result<void> expect(const Chunk& chunk, std::size_t payload_size);
  // Takes the payload of the expected chunk. The link reports an outcome after it has sent further requests,
  // so that the peer works meanwhile.
  std::optional<Finished> receive(std::span<const std::byte> payload);
  void report(const Finished& finished);
  // The peer refuses chunks; report as after receive().
  Result<std::optional<Finished>> refused(const ChunkRefused& refused);
  void report(const Finished& finished, const ChunkRefused& refused);
  // The peer requests chunks. Returns a refusal to send.
  Result<std::optional<ChunkRefused>> requested(const ChunkRequest& request);

  // --- output ---
  std::optional<ChunkRequest> next_request() { return fetches_.next_request(); }
  bool ready() const { return sender_.ready(); }
  std::optional<ChunkSender::Next> next() { return sender_.next(); }
  ChunkRefused give_up(const ChunkSender::Due& due, const Error& error) {
    return sender_.give_up(due, error);
  }

  // Ends everything but the reports of fetches, for which fail_fetches() must be called.
  void end();
  bool has_fetches() const { return !fetch_done_.empty(); }
  void fail_fetches(const Error& error);

 private:
  // Null if the object is not exchanged.
  std::shared_ptr<ExchangeCallbacks> exchange_of(const ObjectId& id) const;
  void end_fetch(const ObjectId& id, const Result<void>& outcome);

  FetchSet fetches_;
  ChunkSender sender_;
  Chunk incoming_;
  std::map<ObjectId, std::shared_ptr<Done>> fetch_done_;
  std::map<ObjectId, std::shared_ptr<ExchangeCallbacks>> exchanges_;
};

}  // namespace fedge::protocol
