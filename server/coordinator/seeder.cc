#include "server/coordinator/detail/seeder.h"

#include <utility>

#include "protocol/session/endpoint.h"
#include "protocol/session/loop.h"

namespace fedge::server {
namespace {

// Returns the client's listening address. It must be on the host that the client connects from, so that
// clients are not sent to a third party.
Result<std::string> address_of(const protocol::Link& link, const std::string& listens) {
  if (listens.empty()) return std::string();
  FEDGE_TRY(said, protocol::parse_listens(listens));
  FEDGE_TRY(seen, protocol::parse_address(link.peer_address()));
  if (!said.host.empty() && !protocol::same_host(said.host, seen.host))
    return Error{ErrorCode::kRefused,
                 "the client announces " + listens + " to other clients, but connects from " + seen.host +
                     "; a client may announce only a port of the address from which it connects"};
  return protocol::to_string({seen.host, said.port});
}

// Source and sink of an object that is only watched: it contains nothing and accepts nothing.
class NoChunks final : public protocol::ChunkSource, public protocol::ChunkSink {
 public:
  Result<void> read_part(std::size_t, std::size_t, std::span<std::byte>) override { return nothing(); }
  bool has(std::size_t) const override { return false; }
  Result<void> write(std::size_t, std::span<const std::byte>) override { return nothing(); }

 private:
  static Result<void> nothing() {
    return Error{ErrorCode::kNotFound, "the coordinator does not store client updates in this run"};
  }
};

}  // namespace

Seeder::Seeder(std::unique_ptr<RunClock> clock, std::uint64_t upload_limit, Owner owner)
    : owner_(std::move(owner)), rng_(owner_.seed), clock_(std::move(clock)) {
  exchange_ = std::make_shared<swarm::Exchange>(
      swarm::PeerRules{.upload_limit = upload_limit}, owner_.seed,
      swarm::Exchange::Owner{
          .now = [this] { return Time(clock_->now() - started_); },
          .arm = [this](std::optional<Time> deadline) { arm(deadline); },
          .on_dropped = [this](ClientId client,
                               const std::string& reason) { owner_.on_misbehaved(client, reason); }});
}

void Seeder::arm(std::optional<Time> deadline) {
  if (!deadline) return clock_->cancel();
  clock_->wake_at(started_ + deadline->time_since_epoch(),
                  protocol::weakly(exchange_, [exchange = exchange_.get()] { exchange->expired(); }));
}

Result<void> Seeder::connected(ClientId client, const std::shared_ptr<protocol::Link>& link,
                               const std::string& listens) {
  const auto address = address_of(*link, listens);
  clients_[client] = {link, address ? *address : std::string()};
  if (!address) return address.error();
  return {};
}

void Seeder::received(ClientId client, const protocol::Message& message) {
  exchange_->received(client, message);
  const auto shown = shown_.find(client);
  if (shown == shown_.end()) return;
  for (const Shown& one : shown->second) count(client, one);
}

void Seeder::show(ClientId client, const protocol::ObjectId& object, std::weak_ptr<Transfer> transfer) {
  std::vector<Shown>& list = shown_[client];
  std::erase_if(list, [](const Shown& one) { return one.transfer.expired(); });
  list.push_back({object, std::move(transfer)});
}

void Seeder::count(ClientId client, const Shown& shown) const {
  const auto transfer = shown.transfer.lock();
  const swarm::Torrent* torrent = exchange_->peer().torrent(shown.object);
  if (!transfer || torrent == nullptr) return;
  const auto share = torrent->shares.find(client);
  if (share == torrent->shares.end() || !share->second.heard) return;
  const auto& [has, wants] = std::tie(share->second.has, share->second.wants);
  const bool here = wants.size() == has.size() ? has.count_common(wants) == wants.count() : has.complete();
  if (here) return transfer->end();
  transfer->requested();
  transfer->reach(std::uint64_t{has.count()} * torrent->chunk_size);
}

void Seeder::departed(ClientId client) {
  shown_.erase(client);
  if (clients_.erase(client) == 0) return;
  const swarm::Tracker::Left left = tracker_.leave(client);
  tell(left.tells);
  for (const protocol::ObjectId& object : left.over) exchange_->close(object);
  exchange_->unlink(client);
}

void Seeder::give(ClientId client, const std::shared_ptr<protocol::StoredObject>& object,
                  std::shared_ptr<protocol::ChunkSource> source, const run::DisseminationSpec& spec) {
  const auto known = clients_.find(client);
  const auto link = owner_.peers.find(client);
  if (known == clients_.end() || !link) return;
  const protocol::Manifest& manifest = object->manifest();
  const protocol::ObjectId id = manifest.id();
  if (!tracker_.has(id))
    exchange_->open({.manifest = manifest,
                     .source = std::move(source),
                     .sink = object,
                     .wanted = swarm::ChunkSet::full(manifest.chunk_count()),
                     .seeding = swarm::Seeding{.copies = spec.copies}},
                    [](const Result<void>&) {});
  if (!exchange_->is_linked(client)) exchange_->link(client, link);
  exchange_->admit(id, client);
  tell(tracker_.join(id, {client, link->peer(), known->second.address}, spec.neighbours,
                     rng_.fork("join", ++joins_)));
}

void Seeder::release(ClientId client, const protocol::ObjectId& object) {
  if (tracker_.done(object, client)) exchange_->close(object);
}

bool Seeder::watch(const protocol::Manifest& object) {
  if (exchange_->is_open(object.id())) return false;
  const auto none = std::make_shared<NoChunks>();
  exchange_->open({.manifest = object,
                   .source = none,
                   .sink = none,
                   .wanted = swarm::ChunkSet(object.chunk_count()),
                   .seeding = {}},
                  [](const Result<void>&) {});
  return true;
}

void Seeder::fetch(const std::shared_ptr<protocol::StoredObject>& object,
                   std::shared_ptr<protocol::ChunkSink> sink, std::function<void(const Result<void>&)> done) {
  const protocol::Manifest& manifest = object->manifest();
  exchange_->open({.manifest = manifest,
                   .source = object,
                   .sink = std::move(sink),
                   .wanted = swarm::ChunkSet::full(manifest.chunk_count()),
                   .seeding = {}},
                  std::move(done));
}

void Seeder::admit(ClientId client, const protocol::ObjectId& object) {
  const auto link = owner_.peers.find(client);
  if (!link) return;
  if (!exchange_->is_linked(client)) exchange_->link(client, link);
  exchange_->admit(object, client);
}

bool Seeder::obtainable(const protocol::ObjectId& object) const {
  const swarm::Torrent* torrent = exchange_->peer().torrent(object);
  return torrent != nullptr && torrent->obtainable();
}

const swarm::ChunkSet* Seeder::chunks_of(ClientId client, const protocol::ObjectId& object) const {
  const swarm::Torrent* torrent = exchange_->peer().torrent(object);
  if (torrent == nullptr) return nullptr;
  const auto share = torrent->shares.find(client);
  return share == torrent->shares.end() || !share->second.heard ? nullptr : &share->second.has;
}

bool Seeder::listens(ClientId client) const {
  const auto known = clients_.find(client);
  return known != clients_.end() && !known->second.address.empty();
}

void Seeder::introduce(ClientId client, const std::vector<ClientId>& others,
                       const protocol::ObjectId& object) {
  protocol::SwarmMembers members{object, {}, {}};
  for (const ClientId other : others) {
    const auto link = owner_.peers.find(other);
    const auto known = clients_.find(other);
    if (link && known != clients_.end()) members.join.push_back({other, link->peer(), known->second.address});
  }
  tell({{client, std::move(members)}});
}

void Seeder::tell(const std::vector<swarm::Tracker::Tell>& tells) {
  for (const auto& [client, message] : tells)
    if (const auto link = owner_.peers.find(client)) link->send(message);
}

void Seeder::stop() { clock_->cancel(); }

}  // namespace fedge::server
