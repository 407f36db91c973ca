// Uploads: updates on their way from clients into the coordinator's chunk store. fetch() brings one in
// over its client's link, decodes it and looks at every value on the worker thread, and answers with Stored
// or Damaged; a link that breaks answers nothing, for its client may come back. Without room on the disk the
// offer is kept and tried again every second, until it is discarded. At most one a client; UploadTurns says
// when one begins. Lives on the io_context's thread; owned by shared_ptr, since links and the worker call
// back.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "core/event.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/session/link.h"
#include "protocol/session/loop.h"
#include "run/stored_update.h"
#include "server/engine/run_engine.h"
#include "server/run_state.h"

namespace fedge::server {

class UploadTurns;

// The update as the aggregators see it.
aggregation::Update update_of(const RunEngine::Fold& accepted, const run::StoredUpdate& upload);

class Uploads : public std::enable_shared_from_this<Uploads> {
 public:
  struct Callbacks {
    std::function<void(const RunEngine::Input&)> on_outcome;  // Stored or Damaged
    std::function<void(const Event&)> on_event;
  };
  // What is lent must outlive it.
  Uploads(boost::asio::io_context& io, protocol::Worker& worker, protocol::ChunkStore& store,
          const RunState& state);
  // Of the chunks that have come, on the wire.
  Bytes received() const { return *received_; }
  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  void fetch(const RunEngine::Fetch& fetch, const std::shared_ptr<protocol::Link>& link);
  // Of an update that has been answered with Stored: as it was sent.
  const std::shared_ptr<protocol::StoredObject>& arrived(ClientId client) const;
  // Hands such an update over.
  run::StoredUpdate take(ClientId client);
  void discard(ClientId client);
  // Nothing is waited for or fetched any more; what has arrived stays in the store.
  void stop();

 private:
  struct Retry;
  struct Waiting {
    RunEngine::Fetch fetch;
    std::shared_ptr<protocol::Link> link;
  };
  struct Entry {
    run::StoredUpdate upload;
    std::shared_ptr<protocol::Link> link;  // while chunks are still coming
  };
  void begin(const Waiting& from);
  void inspect(const Waiting& from);
  // What has come of the client's update goes; its turn and what it waits for stay.
  void forget(ClientId client);
  // Frees what was made of an update that arrived.
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
  Callbacks callbacks_;
  std::map<ClientId, Entry> entries_;
  std::map<ClientId, Waiting> waiting_;  // for room
  bool full_ = false;                    // has been reported
  std::shared_ptr<Bytes> received_ = std::make_shared<Bytes>();
  std::shared_ptr<Retry> retry_;
  std::shared_ptr<UploadTurns> turns_;
};

}  // namespace fedge::server
