#include "server/node_directory.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "dht/memory_directory.h"
#include "dht/node_record.h"

namespace fedge::server {

Result<NodeDirectory> NodeDirectory::open(std::size_t clients, Duration lifetime, OnRecord on_record) {
  const std::size_t most = std::max<std::size_t>(clients, 1);
  const std::size_t bytes = most * protocol::kMaxRecordBytes;
  NodeDirectory nodes(std::make_unique<dht::MemoryDirectory>(dht::MemoryDirectoryOptions{
                          .max_records = most, .max_bytes = bytes, .max_watched = most}),
                      clients, lifetime);
  std::vector<dht::Key> keys;
  auto owners = std::make_shared<std::unordered_map<dht::Key, ClientId, dht::KeyHash>>();
  for (std::uint32_t client = 0; client < clients; ++client) {
    keys.push_back(dht::node_key(ClientId(client)));
    owners->emplace(keys.back(), ClientId(client));
  }
  FEDGE_TRY(subscription, nodes.directory_->watch(std::move(keys), [owners, on_record = std::move(on_record)](
                                                                       const dht::Change& change) {
    if (change.record == nullptr) return;  // who is gone is seen by its link
    const auto record = dht::decode_node_record(change.record->value);
    if (record) on_record(owners->at(change.key), *record);
  }));
  nodes.subscription_ = std::move(subscription);
  return nodes;
}

Result<void> NodeDirectory::publish(ClientId client, const protocol::PublishRecord& message, Time now) {
  if (client.value() >= clients_)
    return invalid("a node record of client " + std::to_string(client.value()) +
                   "; this run's clients are 0 to " + std::to_string(clients_ - 1));
  FEDGE_TRY(record, dht::decode_node_record(message.value));
  if (record.round != message.round.value() || record.sequence != message.sequence)
    return invalid("node record: it is of round " + std::to_string(record.round) + ", sequence " +
                   std::to_string(record.sequence) + ", its message of round " +
                   std::to_string(message.round.value()) + ", sequence " + std::to_string(message.sequence));
  directory_->expire(now);
  return directory_->publish({.key = dht::node_key(client),
                              .round = message.round.value(),
                              .sequence = message.sequence,
                              .expires = now + lifetime_,
                              .value = message.value});
}

}  // namespace fedge::server
