// Link: one authenticated connection to a peer, over mutual TLS 1.3 with pinned Ed25519 keys. It
// multiplexes control messages (sent first) and chunk transfers. Flow control is by credit: a
// receiver asks for at most kFetchWindow bytes of chunks ahead, a sender never sends a chunk that was
// not asked for, so memory on both sides is bounded whatever the object's size.
// All calls and callbacks happen on the io_context's thread. A link closes itself on any protocol
// error; on_closed is called exactly once, later than the call that caused it. An open link lives on
// when its last pointer is let go: close it. No pointer to it may outlive the io_context.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/messages.h"

namespace fedge::protocol {

// Application bytes of frames, both headers included, TLS overhead not.
struct Traffic {
  Bytes sent;
  Bytes received;
};

struct LinkCallbacks {
  // A peer's Goodbye comes here too; what on_closed then gets is its code and reason.
  std::function<void(const Message&)> on_message;
  std::function<void(const Error&)> on_closed;
};

// What comes of an object's chunks that are exchanged one by one, as a swarm decides.
struct ExchangeCallbacks {
  // The peer waits for these: each is to be answered with send_chunk() or refuse_chunk().
  std::function<void(const ChunkRequest&)> on_requested;
  // One that was asked for is in the sink; kCorrupt: it has the wrong bytes; other errors are the sink's.
  std::function<void(const Chunk&, const Result<void>&)> on_chunk;
  std::function<void(const ChunkRefused&)> on_refused;
};

class Link {
 public:
  virtual ~Link() = default;

  virtual const PublicKey& peer() const = 0;
  virtual std::string peer_address() const = 0;
  virtual void set_callbacks(LinkCallbacks callbacks) = 0;

  // Raises the limits from "only a small Hello" to those of an authorised peer.
  virtual void authorise() = 0;
  // Queues a control message; exceeding kMaxQueuedControl closes the link.
  virtual void send(const Message& message) = 0;

  // Lets the peer fetch this object from `source` until stop_serving().
  virtual void serve(const Manifest& manifest, std::shared_ptr<ChunkSource> source) = 0;
  virtual void stop_serving(const ObjectId& id) = 0;
  // Fetches every chunk that `sink` lacks, verifies each, then calls done once. Several fetches run
  // side by side. A chunk with a wrong hash ends the fetch with kCorrupt, the end of the link with
  // kUnavailable, a peer that does not serve the object with the peer's code.
  virtual void fetch(const Manifest& manifest, std::shared_ptr<ChunkSink> sink,
                     std::function<void(Result<void>)> done) = 0;
  // Ends a fetch without calling done.
  virtual void cancel_fetch(const ObjectId& id) = 0;

  // Chunks of this object go both ways, one by one, until end_exchange(). kInvalid if it is being fetched.
  virtual Result<void> exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source,
                                std::shared_ptr<ChunkSink> sink, ExchangeCallbacks callbacks) = 0;
  // What the peer waits for is refused; what is under way still comes, and nobody hears of it.
  virtual void end_exchange(const ObjectId& id) = 0;
  // Asks for a chunk. False if there is no credit for it now, or it has been asked for already.
  virtual bool ask(const Chunk& chunk) = 0;
  // Answers on_requested. False if the peer does not wait for this chunk.
  virtual bool send_chunk(const Chunk& chunk) = 0;
  virtual bool refuse_chunk(const Chunk& chunk, const Error& error) = 0;

  // Bytes of control messages that have not been written yet.
  virtual std::size_t queued() const = 0;
  virtual Traffic traffic() const = 0;
  // Sends what is queued, then closes. Fetches fail, no more messages are handed over, and on_closed
  // gets kUnavailable and this reason. To tell the peer why, send a Goodbye first.
  virtual void close(const std::string& reason) = 0;
};

}  // namespace fedge::protocol
