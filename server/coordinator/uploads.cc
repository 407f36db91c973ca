#include "server/coordinator/uploads.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <utility>

#include "core/check.h"
#include "server/stored_update.h"

namespace fedge::server {

Result<Upload> examine_update(const std::shared_ptr<protocol::StoredObject>& arrived, const RunState& state,
                              protocol::ChunkStore& store) {
  Upload upload{arrived, arrived, 0};
  if (!arrived->manifest().is_plain_float32()) {
    FEDGE_TRY(decoded, decode_update(*arrived, store));
    upload.plain = std::move(decoded);
  }
  const auto norm = state.inspect(arrived->manifest().coverage, StoredValues(upload.plain));
  if (!norm) {
    if (upload.plain != arrived) store.remove(upload.plain->manifest().id());
    return norm.error();
  }
  upload.norm = *norm;
  return upload;
}

aggregation::Update update_of(const RunEngine::Fold& accepted, const Upload& upload) {
  return {.client = accepted.client,
          .weight = accepted.weight,
          .steps = accepted.steps,
          .norm = upload.norm,
          .factor = accepted.factor,
          .coverage = upload.arrived->manifest().coverage,
          .values = std::make_shared<StoredValues>(upload.plain)};
}

void Uploads::fetch(const RunEngine::Fetch& fetch, const std::shared_ptr<protocol::Link>& link) {
  const ClientId client = fetch.client;
  const TaskId task = fetch.offer.task();
  auto object = store_.create(fetch.offer.update);
  if (!object) {
    // Not at once: the effects of the step that asked for this are still being carried out.
    boost::asio::post(io_, [self = shared_from_this(), client, task, fault = object.error()] {
      self->lose(client, task, fault);
    });
    return;
  }
  // What had arrived over a link that was lost is gone on from, unless something else is offered now.
  if (const auto before = entries_.find(client);
      before != entries_.end() && before->second.upload.arrived != *object)
    discard(client);
  const auto sink = std::make_shared<UpdateSink>(*object);
  entries_[client] = {{*object, *object, 0}, link};
  link->fetch(fetch.offer.update, sink, [self = weak_from_this(), client, task, sink](Result<void> done) {
    const auto alive = self.lock();
    if (!alive) return;
    if (const auto entry = alive->entries_.find(client); entry != alive->entries_.end())
      entry->second.link.reset();
    if (done) return alive->inspect(client, task);
    if (sink->fault()) return alive->lose(client, task, *sink->fault());
    // A link that broke says so itself: the client may come back in time.
    if (done.error().code == ErrorCode::kUnavailable) return;
    alive->discard(client);
    alive->callbacks_.on_outcome(RunEngine::Damaged{client, task, done.error()});
  });
}

void Uploads::inspect(ClientId client, TaskId task) {
  const auto entry = entries_.find(client);
  if (entry == entries_.end()) return;
  boost::asio::post(worker_,
                    [self = shared_from_this(), client, task, arrived = entry->second.upload.arrived] {
                      const auto upload = examine_update(arrived, self->state_, self->store_);
                      boost::asio::post(self->io_, [=] { self->examined(arrived, client, task, upload); });
                    });
}

void Uploads::examined(const std::shared_ptr<protocol::StoredObject>& arrived, ClientId client, TaskId task,
                       const Result<Upload>& upload) {
  const auto entry = entries_.find(client);
  if (entry == entries_.end() || entry->second.upload.arrived != arrived) {  // discarded meanwhile
    if (upload) release_plain(*upload);
    return;
  }
  if (upload) {
    entry->second.upload = *upload;
    callbacks_.on_outcome(RunEngine::Stored{client, task});
    return;
  }
  // What may not be in an update is the client's fault, what cannot be read or kept is the disk's.
  const ErrorCode code = upload.error().code;
  if (code != ErrorCode::kInvalid && code != ErrorCode::kCorrupt) return lose(client, task, upload.error());
  discard(client);
  callbacks_.on_outcome(RunEngine::Damaged{client, task, upload.error()});
}

// No file, no space or a bad disk here costs this update, not the run; the client is not to blame.
void Uploads::lose(ClientId client, TaskId task, const Error& fault) {
  callbacks_.on_event(Event{Severity::kError, "update.not_stored", {}}
                          .with("client", std::int64_t{client.value()})
                          .with("reason", fault.message));
  discard(client);
  callbacks_.on_outcome(RunEngine::Damaged{
      client, task, {ErrorCode::kResource, "the coordinator could not store this update"}});
}

const std::shared_ptr<protocol::StoredObject>& Uploads::arrived(ClientId client) const {
  return entries_.at(client).upload.arrived;
}

Upload Uploads::take(ClientId client) {
  auto node = entries_.extract(client);
  FEDGE_CHECK(!node.empty(), "no update of this client is here");
  return std::move(node.mapped().upload);
}

void Uploads::release_plain(const Upload& upload) {
  if (upload.plain != upload.arrived) store_.remove(upload.plain->manifest().id());
}

void Uploads::discard(ClientId client) {
  auto node = entries_.extract(client);
  if (node.empty()) return;
  const Entry& entry = node.mapped();
  if (entry.link) entry.link->cancel_fetch(entry.upload.arrived->manifest().id());
  release_plain(entry.upload);
  store_.remove(entry.upload.arrived->manifest().id());
}

}  // namespace fedge::server
