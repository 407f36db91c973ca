#include "sim/transfers/virtual_uploads.h"

#include "sim/transfers/transfer_size.h"

namespace fedge::sim {
namespace {

// Whether two offers are of one update: the manifests of a simulation do not say what the chunks contain.
bool same_update(const protocol::UpdateOffer& a, const protocol::UpdateOffer& b) {
  return a.task() == b.task() && a.update == b.update && a.steps == b.steps && a.norm == b.norm &&
         a.train_loss == b.train_loss;
}

}  // namespace

void VirtualUploads::fetch(const server::RunEngine::Fetch& fetch) {
  const ClientId client = fetch.client;
  auto& upload = uploads_[client.value()];
  if (!upload || !same_update(upload->offer, fetch.offer)) upload = std::make_unique<Upload>(fetch.offer);
  const Bytes size = transfer_size(fetch.offer.update, upload->arrived);
  const std::uint64_t number = upload->number = ++transfers_;
  upload->transfer = surroundings_.links.begin_upload(client, size);
  // The request travels down, then the payload up.
  surroundings_.world.at(upload->transfer->end + 2 * surroundings_.devices.latency(client),
                         [this, client, number] { arrived(client, number); });
}

void VirtualUploads::arrived(ClientId client, std::uint64_t number) {
  auto& current = uploads_[client.value()];
  if (!current || !current->transfer || current->number != number) return;
  end(client, surroundings_.world.now(), surroundings_.world.now());
  const auto upload = std::exchange(current, nullptr);
  surroundings_.on_arrived(client, upload->offer.task());
}

void VirtualUploads::discard(ClientId client, TaskId) {
  end(client, surroundings_.world.now(), surroundings_.world.now());
  uploads_[client.value()].reset();
}

void VirtualUploads::lost(ClientId client) {
  const Duration latency = surroundings_.devices.latency(client);
  const Time sent = surroundings_.world.now() - latency;
  end(client, sent, sent - latency);
}

void VirtualUploads::end(ClientId client, Time sent, Time kept) {
  auto& upload = uploads_[client.value()];
  if (!upload) return;
  const auto transfer = std::exchange(upload->transfer, std::nullopt);
  if (!transfer) return;
  surroundings_.links.end_upload(client, *transfer, sent);
  upload->arrived += whole_chunks(upload->offer.update, upload->arrived, transfer->passed(kept));
}

}  // namespace fedge::sim
