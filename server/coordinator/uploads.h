// Uploads transfers clients' updates into the coordinator's chunk store. fetch() receives an update over
// its client's link, decodes it, checks every value on the worker thread, and reports the outcome. A
// broken link gives no answer, because the client may reconnect. Without disk space the fetch is retried
// every second until it is discarded. Each client has at most one upload; UploadTurns decides when it
// begins. Use it on the io_context's thread. Owned by shared_ptr, because links and the worker call back.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "core/event.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/session/link.h"
#include "protocol/session/loop.h"
#include "run/stored_update.h"
#include "server/coordinator/detail/disk_retry.h"
#include "server/engine/run_engine.h"
#include "server/live/transfers.h"
#include "server/run_state.h"

namespace fedge::server {

class UpdateSink;
class UploadTurns;

// Returns the update as the aggregators need it.
aggregation::Update update_of(const RunEngine::Fold& accepted, const run::StoredUpdate& upload);

class Uploads : public std::enable_shared_from_this<Uploads> {
 public:
  struct Callbacks {
    // The update is stored, or why it cannot be used.
    std::function<void(ClientId, TaskId, const Result<void>&)> on_outcome;
    std::function<void(const Event&)> on_event;
  };
  // The references must outlive this object.
  Uploads(boost::asio::io_context& io, protocol::Worker& worker, protocol::ChunkStore& store,
          const RunState& state, std::shared_ptr<RunTransfers> transfers);
  // Returns the bytes of chunks received on the wire.
  Bytes received() const { return *received_; }
  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }
  // Joins each checked update with what the coordinator has trained of it, on the worker's thread.
  using Join = std::function<Result<run::StoredUpdate>(ClientId, TaskId, run::StoredUpdate)>;
  void join_with(Join join) { join_ = std::move(join); }

  void fetch(const RunEngine::Fetch& fetch, const std::shared_ptr<protocol::Link>& link);
  // Returns the client's update as it was sent; null if there is none.
  std::shared_ptr<protocol::StoredObject> arrived(ClientId client) const;
  // Returns a stored update and forgets it.
  run::StoredUpdate take(ClientId client);
  void discard(ClientId client);
  // Stops all transfers; received chunks stay in the store.
  void stop();

 private:
  struct Waiting {
    RunEngine::Fetch fetch;
    std::shared_ptr<protocol::Link> link;
  };
  struct Entry {
    run::StoredUpdate upload;
    std::shared_ptr<protocol::Link> link;  // while chunks arrive
  };
  void await_turn(const Waiting& from);
  void begin(const Waiting& from);
  // Returns the sink of an update that arrives from now on.
  std::shared_ptr<UpdateSink> sink_of(ClientId client, const std::shared_ptr<protocol::StoredObject>& object);
  void inspect(const Waiting& from);
  // Deletes the client's update; its place in the queue and its retry remain.
  void forget(ClientId client);
  // Removes the decoded copy of an update.
  void release_plain(const run::StoredUpdate& upload);
  void examined(const std::shared_ptr<protocol::StoredObject>& arrived, const Waiting& from,
                const Result<run::StoredUpdate>& upload);
  void lose(const Waiting& from, const Error& fault);
  void wait_for_room(const Waiting& from, const Error& full);
  void try_again();

  boost::asio::io_context& io_;
  protocol::Worker& worker_;
  protocol::ChunkStore& store_;
  const RunState& state_;
  std::shared_ptr<RunTransfers> transfers_;
  Callbacks callbacks_;
  Join join_;  // null: updates are complete
  std::map<ClientId, Entry> entries_;
  std::map<ClientId, Waiting> waiting_;  // for disk space
  std::shared_ptr<Bytes> received_ = std::make_shared<Bytes>();
  DiskRetry retry_;
  bool stopped_ = false;
  std::shared_ptr<UploadTurns> turns_;
};

}  // namespace fedge::server
