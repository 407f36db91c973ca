#include "server/coordinator/uploads.h"

#include <chrono>
#include <utility>

#include "core/check.h"
#include "protocol/session/loop.h"
#include "server/coordinator/counted_chunks.h"
#include "server/coordinator/detail/upload_turns.h"

namespace fedge::server {

aggregation::Update update_of(const RunEngine::Fold& accepted, const run::StoredUpdate& upload) {
  return {.client = accepted.client,
          .weight = accepted.weight,
          .steps = accepted.steps,
          .norm = upload.norm,
          .factor = accepted.factor,
          .loss = accepted.loss,
          .coverage = upload.plain->manifest().coverage,
          .values = std::make_shared<run::StoredValues>(upload.plain)};
}

Uploads::Uploads(boost::asio::io_context& io, protocol::Worker& worker, protocol::ChunkStore& store,
                 const RunState& state, std::shared_ptr<RunTransfers> transfers)
    : io_(io),
      worker_(worker),
      store_(store),
      state_(state),
      transfers_(std::move(transfers)),
      retry_(
          io, [this](const Event& event) { callbacks_.on_event(event); }, [this] { try_again(); }),
      turns_(std::make_shared<UploadTurns>(io, kUploadsAtOnce)) {}

void Uploads::fetch(const RunEngine::Fetch& fetch, const std::shared_ptr<protocol::Link>& link) {
  const protocol::UpdateOffer& offer = fetch.offer;
  transfers_->open(fetch.client, offer.task(), TransferObject::kUpdate, offer.update.payload_size)
      ->wait(TransferWait::kTurn);
  await_turn({fetch, link});
}

void Uploads::await_turn(const Waiting& from) {
  waiting_.erase(from.fetch.client);
  turns_->ask(from.fetch.client, [this, from] { begin(from); });
}

// Chunks that are here were received before a disconnect.
std::shared_ptr<UpdateSink> Uploads::sink_of(ClientId client,
                                             const std::shared_ptr<protocol::StoredObject>& object) {
  const auto transfer = transfers_->find(client, TransferObject::kUpdate);
  const protocol::Manifest& manifest = object->manifest();
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < manifest.chunk_count(); ++i)
    if (object->has(i)) before += manifest.chunk_length(i);
  if (transfer) transfer->move(before);
  return std::make_shared<UpdateSink>(object, received_, transfer);
}

void Uploads::begin(const Waiting& from) {
  const auto& [fetch, link] = from;
  const ClientId client = fetch.client;
  auto object = store_.create(fetch.offer.update);
  if (!object && object.error().code == ErrorCode::kResource) return wait_for_room(from, object.error());
  if (!object) {
    // Posted, because the effects of the current engine step are still being carried out.
    protocol::post(io_,
                   [self = shared_from_this(), from, fault = object.error()] { self->lose(from, fault); });
    return;
  }
  // Resumes a partial update after a reconnect, unless another update is offered.
  if (const auto before = entries_.find(client);
      before != entries_.end() && before->second.upload.arrived != *object)
    forget(client);
  const auto sink = sink_of(client, *object);
  entries_[client] = {{*object, *object, 0}, link};
  link->fetch(fetch.offer.update, sink, protocol::weakly(this, [this, from, sink](const Result<void>& done) {
                const ClientId sender = from.fetch.client;
                const auto entry = entries_.find(sender);
                if (entry == entries_.end() || entry->second.link != from.link) return;  // no longer wanted
                entry->second.link.reset();
                turns_->leave(sender);
                const bool full = !done && sink->fault() && sink->fault()->code == ErrorCode::kResource;
                if (full) return wait_for_room(from, *sink->fault());
                transfers_->end(sender, TransferObject::kUpdate);
                if (done) return inspect(from);
                if (sink->fault()) return lose(from, *sink->fault());
                // The link itself reports its end; the client may reconnect in time.
                if (done.error().code == ErrorCode::kUnavailable) return;
                discard(sender);
                callbacks_.on_outcome(sender, from.fetch.offer.task(), done.error());
              }));
}

void Uploads::inspect(const Waiting& from) {
  const auto entry = entries_.find(from.fetch.client);
  if (entry == entries_.end()) return;
  worker_.post([self = shared_from_this(), from, arrived = entry->second.upload.arrived] {
    auto upload = run::examine_update(arrived, self->state_.value_rules(), self->store_);
    if (upload && self->join_)
      upload = self->join_(from.fetch.client, from.fetch.offer.task(), std::move(*upload));
    protocol::post(self->io_, [=] { self->examined(arrived, from, upload); });
  });
}

void Uploads::examined(const std::shared_ptr<protocol::StoredObject>& arrived, const Waiting& from,
                       const Result<run::StoredUpdate>& upload) {
  const ClientId client = from.fetch.client;
  const auto entry = entries_.find(client);
  if (entry == entries_.end() || entry->second.upload.arrived != arrived) {  // discarded meanwhile
    if (upload) release_plain(*upload);
    return;
  }
  if (!upload && upload.error().code == ErrorCode::kResource) return wait_for_room(from, upload.error());
  if (waiting_.empty()) retry_.found_room();
  if (upload) {
    entry->second.upload = *upload;
    callbacks_.on_outcome(client, from.fetch.offer.task(), {});
    return;
  }
  // Invalid values are the client's fault; read or write errors are the disk's.
  const ErrorCode code = upload.error().code;
  if (code != ErrorCode::kInvalid && code != ErrorCode::kCorrupt) return lose(from, upload.error());
  discard(client);
  callbacks_.on_outcome(client, from.fetch.offer.task(), upload.error());
}

// A local disk error loses this update, not the run; the client is not blamed.
void Uploads::lose(const Waiting& from, const Error& fault) {
  const ClientId client = from.fetch.client;
  callbacks_.on_event(Event{Severity::kError, "update.store_failed", {}}
                          .with("client", std::int64_t{client.value()})
                          .with("reason", fault.message));
  discard(client);
  callbacks_.on_outcome(client, from.fetch.offer.task(),
                        Error{ErrorCode::kResource, "the coordinator could not store this update"});
}

// Keeps partial data and retries: an operator may free disk space before the round closes.
void Uploads::wait_for_room(const Waiting& from, const Error& full) {
  if (stopped_) return;
  turns_->leave(from.fetch.client);
  if (const auto transfer = transfers_->find(from.fetch.client, TransferObject::kUpdate))
    transfer->wait(TransferWait::kDisk);
  waiting_.insert_or_assign(from.fetch.client, from);
  retry_.stopped(full);
}

void Uploads::try_again() {
  const auto alive = shared_from_this();  // an outcome may end the run
  for (const auto& [client, from] : std::exchange(waiting_, {})) {
    if (const auto transfer = transfers_->find(client, TransferObject::kUpdate))
      transfer->wait(TransferWait::kTurn);
    await_turn(from);
  }
}

void Uploads::stop() {
  stopped_ = true;
  for (auto& [client, entry] : entries_)
    if (const auto link = std::exchange(entry.link, nullptr))
      link->cancel_fetch(entry.upload.arrived->manifest().id());
  waiting_.clear();
  turns_->stop();
  retry_.cancel();
}

std::shared_ptr<protocol::StoredObject> Uploads::arrived(ClientId client) const {
  const auto entry = entries_.find(client);
  return entry != entries_.end() ? entry->second.upload.arrived : nullptr;
}

run::StoredUpdate Uploads::take(ClientId client) {
  auto node = entries_.extract(client);
  FEDGE_CHECK(!node.empty(), "no update of this client is here");
  return std::move(node.mapped().upload);
}

void Uploads::release_plain(const run::StoredUpdate& upload) {
  if (upload.plain != upload.arrived) store_.remove(upload.plain->manifest().id());
}

void Uploads::discard(ClientId client) {
  waiting_.erase(client);
  turns_->leave(client);
  transfers_->end(client, TransferObject::kUpdate);
  forget(client);
}

void Uploads::forget(ClientId client) {
  auto node = entries_.extract(client);
  if (node.empty()) return;
  const Entry& entry = node.mapped();
  if (entry.link) entry.link->cancel_fetch(entry.upload.arrived->manifest().id());
  release_plain(entry.upload);
  store_.remove(entry.upload.arrived->manifest().id());
}

}  // namespace fedge::server
