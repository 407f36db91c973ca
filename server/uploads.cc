#include "server/uploads.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <utility>

#include "core/check.h"
#include "server/update_sink.h"

namespace fedge::server {

void Uploads::fetch(const RunEngine::Fetch& fetch, const std::shared_ptr<protocol::Link>& link) {
  const ClientId client = fetch.client;
  const RoundNumber round = fetch.offer.round;
  auto object = store_.create(fetch.offer.update);
  if (!object) return lose(client, round, object.error());
  const auto sink = std::make_shared<UpdateSink>(*object);
  entries_[client] = {{*object, 0}, link};
  link->fetch(fetch.offer.update, sink, [self = weak_from_this(), client, round, sink](Result<void> done) {
    const auto alive = self.lock();
    if (!alive) return;
    if (const auto entry = alive->entries_.find(client); entry != alive->entries_.end())
      entry->second.link.reset();
    if (done) return alive->inspect(client, round);
    if (sink->fault()) return alive->lose(client, round, *sink->fault());
    // A link that broke says so itself: the client may come back in time.
    if (done.error().code == ErrorCode::kUnavailable) return;
    alive->discard(client);
    alive->callbacks_.on_outcome(RunEngine::Damaged{client, round, done.error()});
  });
}

void Uploads::inspect(ClientId client, RoundNumber round) {
  const auto entry = entries_.find(client);
  if (entry == entries_.end()) return;
  boost::asio::post(worker_, [self = shared_from_this(), client, round, upload = entry->second.upload] {
    const auto norm = self->state_.inspect(upload.object->manifest().coverage, StoredValues(upload.object));
    boost::asio::post(self->io_,
                      [self, client, round, upload, norm] { self->inspected(client, round, upload, norm); });
  });
}

void Uploads::inspected(ClientId client, RoundNumber round, const Upload& upload,
                        const Result<double>& norm) {
  const auto entry = entries_.find(client);
  if (entry == entries_.end() || entry->second.upload.object != upload.object) return;  // discarded meanwhile
  if (norm) {
    entry->second.upload.norm = *norm;
    callbacks_.on_outcome(RunEngine::Stored{client, round});
    return;
  }
  // What may not be in an update is the client's fault, what cannot be read is the disk's.
  if (norm.error().code != ErrorCode::kInvalid) return lose(client, round, norm.error());
  discard(client);
  callbacks_.on_outcome(RunEngine::Damaged{client, round, norm.error()});
}

// No file, no space or a bad disk here costs this update, not the run; the client is not to blame.
void Uploads::lose(ClientId client, RoundNumber round, const Error& fault) {
  callbacks_.on_event(Event{Severity::kError, "update.not_stored", {}}
                          .with("client", std::int64_t{client.value()})
                          .with("reason", fault.message));
  discard(client);
  callbacks_.on_outcome(RunEngine::Damaged{
      client, round, {ErrorCode::kResource, "the coordinator could not store this update"}});
}

Upload Uploads::take(ClientId client) {
  auto node = entries_.extract(client);
  FEDGE_CHECK(!node.empty(), "no update of this client is here");
  return std::move(node.mapped().upload);
}

void Uploads::discard(ClientId client) {
  auto node = entries_.extract(client);
  if (node.empty()) return;
  const Entry& entry = node.mapped();
  if (entry.link) entry.link->cancel_fetch(entry.upload.object->manifest().id());
  release(*entry.upload.object);
}

}  // namespace fedge::server
