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

  virtual Traffic traffic() const = 0;
  // Sends what is queued, then closes. Fetches fail, no more messages are handed over, and on_closed
  // gets kUnavailable and this reason. To tell the peer why, send a Goodbye first.
  virtual void close(const std::string& reason) = 0;
};

}  // namespace fedge::protocol
