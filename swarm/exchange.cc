#include "swarm/exchange.h"

#include <utility>
#include <vector>

#include "core/crypto/sealed_box.h"
#include "protocol/limits.h"
#include "protocol/session/loop.h"
#include "swarm/peer/parcel.h"

namespace fedge::swarm {
namespace {

constexpr std::size_t kMaxQueuedSealed = protocol::kMaxQueuedControl / 4;

}  // namespace

// The chunks of one object on one link. It reports each chunk that was written to the link.
class Exchange::Source final : public protocol::ChunkSource {
 public:
  Source(std::weak_ptr<Exchange> exchange, ClientId peer, const protocol::ObjectId& object,
         std::shared_ptr<protocol::ChunkSource> source)
      : exchange_(std::move(exchange)), peer_(peer), object_(object), source_(std::move(source)) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    return source_->read_part(chunk, from, out);
  }
  void sent(std::size_t chunk, std::size_t frame_size) override {
    source_->sent(chunk, frame_size);
    if (const auto exchange = exchange_.lock())
      exchange->step(Peer::Sent{peer_, {object_, static_cast<std::uint32_t>(chunk)}});
  }

 private:
  std::weak_ptr<Exchange> exchange_;
  ClientId peer_;
  protocol::ObjectId object_;
  std::shared_ptr<protocol::ChunkSource> source_;
};

Exchange::Exchange(const PeerRules& rules, std::uint64_t seed, Owner owner)
    : peer_(rules), rng_(seed), owner_(std::move(owner)) {}

void Exchange::step(const Peer::Input& input) {
  std::vector<Peer::Effect> effects;
  peer_.step(input, {owner_.now(), rng_}, effects);
  for (const auto& effect : effects) std::visit([&](const auto& specific) { carry_out(specific); }, effect);
  owner_.arm(peer_.next_deadline());
}

void Exchange::open(Object object, std::function<void(const Result<void>&)> done) {
  const protocol::Manifest manifest = object.manifest;
  if (stays_open(object)) {
    objects_.at(manifest.id()).done = nullptr;  // the previous opener has its result
    return done({});
  }
  close(manifest.id());
  ChunkSet held(manifest.chunk_count());
  for (std::size_t i = 0; i < held.size(); ++i)
    if (object.sink->has(i)) held.add(i);
  const ChunkSet wanted = object.wanted;
  const std::optional<Seeding> seeding = object.seeding;
  const auto warmup = object.warmup;
  objects_.insert_or_assign(manifest.id(), Opened{std::move(object), std::move(done)});
  step(Peer::Open{manifest, held, wanted, seeding, warmup});
}

// Whether the same object is open and complete, so that its neighbours need not hear of it again.
bool Exchange::stays_open(const Object& object) const {
  const auto opened = objects_.find(object.manifest.id());
  if (opened == objects_.end() || opened->second.object.sink != object.sink) return false;
  const Torrent* torrent = peer_.torrent(object.manifest.id());
  return torrent->complete_for(object.wanted) && !torrent->seeding && !torrent->warmup && !object.seeding &&
         !object.warmup;
}

void Exchange::close(const protocol::ObjectId& object) {
  if (objects_.erase(object) > 0) step(Peer::Close{object});
}

void Exchange::link(ClientId peer, std::shared_ptr<protocol::Link> link) {
  unlink(peer);
  links_[peer] = std::move(link);
  step(Peer::Linked{peer});
}

void Exchange::unlink(ClientId peer) {
  if (links_.erase(peer) > 0) step(Peer::Unlinked{peer});
}

void Exchange::received(ClientId peer, const protocol::Message& message) {
  const auto* sealed = std::get_if<protocol::SealedChunk>(&message);
  if (sealed == nullptr || sealed->to != owner_.self) return step(Peer::Received{peer, message});
  if (owner_.unseal) open_sealed(peer, *sealed);
}

void Exchange::arrived(ClientId peer, const protocol::Chunk& chunk, const Result<void>& outcome) {
  if (!outcome && outcome.error().code != ErrorCode::kCorrupt) {
    finish(chunk.object, outcome);
    close(chunk.object);
    return;
  }
  step(Peer::Arrived{peer, chunk, static_cast<bool>(outcome)});
}

void Exchange::finish(const protocol::ObjectId& object, const Result<void>& outcome) {
  const auto opened = objects_.find(object);
  if (opened == objects_.end()) return;
  if (const auto done = std::exchange(opened->second.done, nullptr)) done(outcome);
}

void Exchange::carry_out(const Peer::Exchange& effect) {
  const auto opened = objects_.find(effect.object);
  const auto link = links_.find(effect.peer);
  if (opened == objects_.end() || link == links_.end()) return;
  const Object& object = opened->second.object;
  protocol::ExchangeCallbacks callbacks;
  callbacks.on_requested =
      protocol::weakly(this, [this, peer = effect.peer](const protocol::ChunkRequest& request) {
        step(Peer::Requested{peer, request});
      });
  callbacks.on_chunk = protocol::weakly(
      this, [this, peer = effect.peer](const protocol::Chunk& chunk, const Result<void>& outcome) {
        arrived(peer, chunk, outcome);
      });
  callbacks.on_refused =
      protocol::weakly(this, [this, peer = effect.peer](const protocol::ChunkRefused& refused) {
        step(Peer::Refused{peer, refused});
      });
  // If this fails, the link is about to be closed or already fetches this object: nothing arrives over it.
  (void)link->second->exchange(
      object.manifest, std::make_shared<Source>(weak_from_this(), effect.peer, effect.object, object.source),
      object.sink, std::move(callbacks));
}

void Exchange::carry_out(const Peer::EndExchange& effect) {
  if (const auto link = links_.find(effect.peer); link != links_.end())
    link->second->end_exchange(effect.object);
}

void Exchange::carry_out(const Peer::Send& effect) {
  const auto link = links_.find(effect.peer);
  if (link == links_.end()) return;
  // Sealed chunks are queued whole. If the link is too slow, they are dropped, since others arrive over other
  // links.
  const bool sealed = std::holds_alternative<protocol::SealedChunk>(effect.message);
  if (sealed && link->second->queued() > kMaxQueuedSealed) return;
  link->second->send(effect.message);
}

void Exchange::carry_out(const Peer::Ask& effect) {
  const auto link = links_.find(effect.peer);
  if (link == links_.end() || link->second->ask(effect.chunk)) return;
  // Other fetches have used up the link's credit.
  step(Peer::Refused{
      effect.peer,
      {effect.chunk.object,
       effect.chunk.index,
       1,
       {ErrorCode::kResource,
        "other requests on this connection have used up the number of chunks that it may request"}}});
}

void Exchange::carry_out(const Peer::SendChunk& effect) {
  if (const auto link = links_.find(effect.peer); link != links_.end())
    link->second->send_chunk(effect.chunk);
}

void Exchange::carry_out(const Peer::SendSealed& effect) {
  const auto opened = objects_.find(effect.chunk.object);
  const auto link = links_.find(effect.spray.over);
  if (opened == objects_.end() || link == links_.end()) return;
  std::vector<std::byte> bytes(opened->second.object.manifest.chunk_length(effect.chunk.index));
  if (!opened->second.object.source->read_part(effect.chunk.index, 0, bytes)) return;
  // If sealing fails, the chunk is not sent; the tracker is not told.
  if (auto sealed = seal(effect.spray.key, pack(effect.chunk, bytes)))
    carry_out(Peer::Send{effect.spray.over,
                         protocol::SealedChunk{effect.swarm, effect.spray.to, std::move(*sealed)}});
}

// Silently ignores a message that cannot be opened or holds no chunk that is exchanged: the relay could not
// know.
void Exchange::open_sealed(ClientId peer, const protocol::SealedChunk& message) {
  const auto packed = owner_.unseal(message.sealed);
  const auto parcel = packed ? unpack(*packed) : std::nullopt;
  if (!parcel) return;
  const auto& [chunk, bytes] = *parcel;
  const auto opened = objects_.find(chunk.object);
  if (opened == objects_.end() || !peer_.takes_sealed(peer, message.swarm, chunk)) return;
  const Object& object = opened->second.object;
  if (!protocol::verify_chunk(object.manifest, chunk.index, bytes)) return;
  if (const auto written = object.sink->write(chunk.index, bytes); !written) {
    finish(chunk.object, written);
    return close(chunk.object);
  }
  step(Peer::Unsealed{chunk});
}

void Exchange::carry_out(const Peer::RefuseChunk& effect) {
  if (const auto link = links_.find(effect.peer); link != links_.end())
    link->second->refuse_chunk(effect.chunk, effect.error);
}

void Exchange::carry_out(const Peer::Drop& effect) { owner_.on_dropped(effect.peer, effect.reason); }

void Exchange::carry_out(const Peer::Completed& effect) { finish(effect.object, {}); }

}  // namespace fedge::swarm
