// Uploads: updates on their way from clients into the coordinator's chunk store. fetch() brings one in
// over its client's link, decodes it and looks at every value on the worker thread, and answers with Stored
// or Damaged;
// a link that breaks answers nothing, for its client may come back. At most one a client. Lives on the
// io_context's thread; owned by shared_ptr, since links and the worker call back.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "core/event.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/session/link.h"
#include "server/engine/run_engine.h"
#include "server/run_state.h"

namespace boost::asio {
class io_context;
class thread_pool;
}  // namespace boost::asio

namespace fedge::server {

// An update that is here, and the Euclidean norm of its values.
struct Upload {
  std::shared_ptr<protocol::StoredObject> object;  // plain float32, once it has been inspected
  double norm = 0;
};

class Uploads : public std::enable_shared_from_this<Uploads> {
 public:
  struct Callbacks {
    std::function<void(const RunEngine::Input&)> on_outcome;  // Stored or Damaged
    std::function<void(const Event&)> on_event;
  };
  // What is lent must outlive it.
  Uploads(boost::asio::io_context& io, boost::asio::thread_pool& worker, protocol::ChunkStore& store,
          const RunState& state)
      : io_(io), worker_(worker), store_(store), state_(state) {}
  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  void fetch(const RunEngine::Fetch& fetch, const std::shared_ptr<protocol::Link>& link);
  // Hands over an update that has been answered with Stored; its space is freed by release().
  Upload take(ClientId client);
  void discard(ClientId client);
  void release(const protocol::StoredObject& object) { store_.remove(object.manifest().id()); }

 private:
  struct Entry {
    Upload upload;
    std::shared_ptr<protocol::Link> link;  // while chunks are still coming
  };
  void inspect(ClientId client, TaskId task);
  // On the worker thread: decoded, every value checked.
  Result<Upload> examine(const std::shared_ptr<protocol::StoredObject>& arrived);
  void examined(const std::shared_ptr<protocol::StoredObject>& arrived, ClientId client, TaskId task,
                const Result<Upload>& upload);
  void lose(ClientId client, TaskId task, const Error& fault);

  boost::asio::io_context& io_;
  boost::asio::thread_pool& worker_;
  protocol::ChunkStore& store_;
  const RunState& state_;
  Callbacks callbacks_;
  std::map<ClientId, Entry> entries_;
};

}  // namespace fedge::server
