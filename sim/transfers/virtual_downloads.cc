#include "sim/transfers/virtual_downloads.h"

#include "protocol/chunks/chunk_selection.h"

namespace fedge::sim {

void VirtualDownloads::fetch(ClientId client, const client::ClientEngine::FetchModel& fetch,
                             const Coverage& coverage) {
  auto& files = at(client).files;
  if (!files) files = std::make_unique<DeviceFiles>();
  const auto shared = [](DeviceFiles::Manifest& last, const protocol::Manifest& manifest) {
    if (!last || *last != manifest) last = std::make_shared<const protocol::Manifest>(manifest);
    return last;
  };
  DeviceFiles::Needed needed{
      .model = shared(last_model_, fetch.model), .chunks = {}, .frozen = surroundings_.task.frozen()};
  if (needed.frozen && fetch.task.kind == TaskKind::kTraining)
    needed.chunks = protocol::chunks_of(fetch.model, surroundings_.task.needed(coverage));
  if (fetch.control) needed.control = shared(last_control_, *fetch.control);
  files->begin(needed);
  if (surroundings_.swarm != nullptr) return exchange(client, fetch);
  download(client, fetch.run, fetch.task);
}

void VirtualDownloads::exchange(ClientId client, const client::ClientEngine::FetchModel& fetch) {
  OnDevice& device = at(client);
  if (surroundings_.exchange != nullptr) surroundings_.exchange->go_on(client);
  if (surroundings_.exchange != nullptr && surroundings_.exchange->has(client, fetch.model.id()))
    device.files->arrived(swarm::ChunkSet::full(fetch.model.chunk_count()));
  device.exchanging = fetch;
  surroundings_.swarm->open(client, fetch.model, device.files->held(), device.files->wanted());
}

// The client downloads the control variate, if needed, from the coordinator.
void VirtualDownloads::completed(ClientId client, const protocol::ObjectId& object) {
  OnDevice& device = at(client);
  if (!device.exchanging || device.exchanging->model.id() != object) return;
  const auto fetch = std::exchange(device.exchanging, {});
  device.files->arrived(device.files->wanted());
  download(client, fetch->run, fetch->task);
}

void VirtualDownloads::stopped(ClientId client, const swarm::Torrent& object) {
  const OnDevice& device = at(client);
  if (device.exchanging && device.exchanging->model.id() == object.id) device.files->arrived(object.held);
}

void VirtualDownloads::download(ClientId client, RunId run, TaskId task) {
  const World& world = surroundings_.world;
  const Bytes size = at(client).files->missing();
  if (size == Bytes())
    return surroundings_.links.while_connected(
        client, world.now(), [this, client, run, task] { surroundings_.on_fetched(client, run, task); });
  const Line::Transfer transfer = surroundings_.links.begin_download(client, size);
  const std::uint64_t number = ++downloads_;
  at(client).download = Download{number, run, task, transfer};
  // The request travels up, then the model down.
  surroundings_.world.at(transfer.end + 2 * surroundings_.devices.latency(client),
                         [this, client, number] { arrived(client, number); });
}

void VirtualDownloads::arrived(ClientId client, std::uint64_t number) {
  OnDevice& device = at(client);
  if (!device.download || device.download->number != number) return;
  const Download done = *std::exchange(device.download, {});
  surroundings_.links.end_download(client, done.transfer, done.transfer.end);
  device.files->completed();
  surroundings_.on_fetched(client, done.run, done.task);
}

void VirtualDownloads::end(ClientId client, Time sent, Time kept) {
  const auto download = std::exchange(at(client).download, {});
  if (!download) return;
  surroundings_.links.end_download(client, download->transfer, sent);
  at(client).files->arrived(download->transfer.passed(kept));
}

void VirtualDownloads::abandon(ClientId client) {
  const Time now = surroundings_.world.now();
  end(client, now, now - 2 * surroundings_.devices.latency(client));
  if (at(client).exchanging) surroundings_.swarm->close(client);
  at(client).exchanging.reset();
}

void VirtualDownloads::lost(ClientId client) {
  const Duration latency = surroundings_.devices.latency(client);
  const Time sent = surroundings_.world.now() - latency;
  end(client, sent, sent - latency);
  if (surroundings_.swarm != nullptr) surroundings_.swarm->gone(client);
  at(client).exchanging.reset();
}

void VirtualDownloads::release(ClientId client) {
  const Time sent = surroundings_.world.now() - surroundings_.devices.latency(client);
  end(client, sent, sent);
}

void VirtualDownloads::take_back(ClientId client, TaskId task) {
  const auto& download = at(client).download;
  if (download && download->task == task) release(client);
}

// A model that was evaluated is trained next.
void VirtualDownloads::update_kept(ClientId client, TaskId task) {
  auto& files = at(client).files;
  if (!files->update_kept(surroundings_.swarm != nullptr || task.kind != TaskKind::kTraining)) files.reset();
}

void VirtualDownloads::restarted(ClientId client) {
  if (const auto& files = at(client).files) files->restarted();
}

}  // namespace fedge::sim
