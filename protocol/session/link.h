// Link: one authenticated connection to a peer, over mutual TLS 1.3 with pinned Ed25519 keys. It carries
// control messages (sent first) and chunk transfers. Flow control is by credit: a receiver requests at most
// kFetchWindow bytes of chunks in advance, and a sender sends only requested chunks. So memory is bounded
// on both sides, whatever the object's size. All calls and callbacks happen on the io_context's thread. A
// link closes itself on any protocol error. It calls on_closed exactly once, after the causing call has
// returned. An open link stays alive without pointers to it: close it. No pointer to it may outlive the
// io_context.
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

// Bytes of frames including both headers, without TLS overhead.
struct Traffic {
  Bytes sent;
  Bytes received;
};

struct LinkCallbacks {
  // Also gets a peer's Goodbye; on_closed then gets its code and reason.
  std::function<void(const Message&)> on_message;
  std::function<void(const Error&)> on_closed;
};

// Callbacks for an object whose chunks are exchanged one by one, as a swarm decides.
struct ExchangeCallbacks {
  // The peer requests these; answer each with send_chunk() or refuse_chunk().
  std::function<void(const ChunkRequest&)> on_requested;
  // A requested chunk is in the sink; kCorrupt: its bytes were wrong; other errors are the sink's.
  std::function<void(const Chunk&, const Result<void>&)> on_chunk;
  std::function<void(const ChunkRefused&)> on_refused;
};

class Link {
 public:
  virtual ~Link() = default;

  virtual const PublicKey& peer() const = 0;
  // The key that this side has proved in the handshake.
  virtual const PublicKey& own_key() const = 0;
  virtual std::string peer_address() const = 0;
  virtual void set_callbacks(LinkCallbacks callbacks) = 0;

  // Raises the limits from those for a Hello to those of an authorised peer.
  virtual void authorise() = 0;
  // Queues a control message; more than kMaxQueuedControl bytes close the link.
  virtual void send(const Message& message) = 0;

  // Lets the peer fetch this object from `source` until stop_serving().
  virtual void serve(const Manifest& manifest, std::shared_ptr<ChunkSource> source) = 0;
  virtual void stop_serving(const ObjectId& id) = 0;
  // Fetches every chunk that `sink` lacks, verifies each, then calls `done` once. Several fetches may run
  // at the same time. Errors: kCorrupt for a chunk with a wrong hash, kUnavailable if the link ends, and
  // the peer's code if it does not serve the object.
  virtual void fetch(const Manifest& manifest, std::shared_ptr<ChunkSink> sink,
                     std::function<void(Result<void>)> done) = 0;
  // Ends a fetch without calling done.
  virtual void cancel_fetch(const ObjectId& id) = 0;

  // Allows chunks of this object in both directions until end_exchange(). kInvalid if it is being fetched.
  virtual Result<void> exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source,
                                std::shared_ptr<ChunkSink> sink, ExchangeCallbacks callbacks) = 0;
  // Refuses the peer's requests; outstanding chunks still arrive, without a callback.
  virtual void end_exchange(const ObjectId& id) = 0;
  // Requests a chunk. False if there is no credit now, or it has been requested already.
  virtual bool ask(const Chunk& chunk) = 0;
  // Answers on_requested. False if the peer did not request this chunk.
  virtual bool send_chunk(const Chunk& chunk) = 0;
  virtual bool refuse_chunk(const Chunk& chunk, const Error& error) = 0;

  // Bytes of control messages that have not been written.
  virtual std::size_t queued() const = 0;
  virtual Traffic traffic() const = 0;
  // Sends what is queued, then closes. Fetches fail, no more messages are delivered, and on_closed gets
  // kUnavailable and this reason. To give the peer a reason, send a Goodbye first.
  virtual void close(const std::string& reason) = 0;
};

}  // namespace fedge::protocol
