#include "sim/directory/virtual_records.h"

#include <utility>

#include "client/node_status.h"
#include "dht/node_record.h"
#include "protocol/codec.h"

namespace fedge::sim {

VirtualRecords::VirtualRecords(const Surroundings& surroundings, std::size_t clients,
                               server::NodeRecords::OnRecord on_record)
    : surroundings_(surroundings),
      nodes_({.run = surroundings.config.id,
              .clients = clients,
              .every = surroundings.config.status.every,
              .directory =
                  surroundings.directory != nullptr ? &surroundings.directory->of_coordinator() : nullptr},
             std::move(on_record)) {}

// Following a client's records requires its key.
void VirtualRecords::linked(ClientId client) {
  if (surroundings_.directory == nullptr) return;
  if (const auto followed = nodes_.follow(client, surroundings_.directory->key_of(client)); !followed)
    surroundings_.world.fail(followed.error());
}

void VirtualRecords::publish(ClientId client, const client::ClientEngine::Publish& publish,
                             std::optional<double> utility) {
  const run::RunConfig& config = surroundings_.config;
  World& world = surroundings_.world;
  NodeRecord record = client::describe_node(
      publish,
      {.latency_ms = 2000 * to_seconds(surroundings_.devices.latency(client)),
       .utility = utility,
       .labels = client::published_labels(surroundings_.task, client, config.status,
                                          world.root().fork("label noise", client.value())),
       .battery = surroundings_.supply != nullptr ? surroundings_.supply->level(client) : 1.0},
      config.status, {});
  record.sequence = static_cast<std::uint64_t>(world.now().time_since_epoch().count());
  if (surroundings_.directory != nullptr)
    return surroundings_.directory->publish(client, publish.run, record);
  auto value = dht::encode_node_record(record);
  if (!value) return world.fail(value.error());
  protocol::PublishRecord message{publish.run, publish.round, record.sequence, std::move(*value)};
  const Bytes size(protocol::frame_size(message));
  surroundings_.links.send_up(client, size,
                              [this, client, message = std::move(message)] { arrived(client, message); });
}

void VirtualRecords::arrived(ClientId client, const protocol::PublishRecord& record) {
  const auto kept = nodes_.received(client, record, surroundings_.world.now());
  if (!kept && kept.error().code != ErrorCode::kStale) surroundings_.world.fail(kept.error());
}

}  // namespace fedge::sim
