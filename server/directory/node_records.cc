#include "server/directory/node_records.h"

#include <string>
#include <utility>
#include <variant>

#include "dht/node_record.h"

namespace fedge::server {

NodeRecords::NodeRecords(const Options& options, OnRecord on_record)
    : options_(options), on_record_(std::move(on_record)) {}

Result<void> NodeRecords::check(ClientId client) const {
  if (client.value() < options_.clients) return {};
  return invalid("node record: client " + std::to_string(client.value()) +
                 " is not a client of this run; its clients are 0 to " +
                 std::to_string(options_.clients - 1));
}

Result<void> NodeRecords::received(ClientId client, const protocol::PublishRecord& message, Time now) {
  FEDGE_TRY_VOID(check(client));
  if (in_directory())
    return Error{
        ErrorCode::kUnsupported,
        "node record: this run receives node records from the directory (status.via), not in messages"};
  FEDGE_TRY(record, dht::decode_node_record(message.value));
  if (record.round != message.round.value() || record.sequence != message.sequence)
    return invalid("node record: it has round " + std::to_string(record.round) + ", sequence " +
                   std::to_string(record.sequence) + ", but its message has round " +
                   std::to_string(message.round.value()) + ", sequence " + std::to_string(message.sequence));
  const std::pair place{record.round, record.sequence};
  Last& last = last_[client];
  if (now < last.expires && place <= last.place)
    return Error{ErrorCode::kStale, "node record: a later record of this client was already received"};
  last = {place, now + 3 * options_.every};
  on_record_(client, record);
  return {};
}

Result<void> NodeRecords::follow(ClientId client, const PublicKey& key) {
  if (!in_directory()) return {};
  FEDGE_TRY_VOID(check(client));
  const auto former = followed_.find(client);
  if (former != followed_.end() && former->second.key == key) return {};
  if (former != followed_.end())
    followed_.erase(former);  // records under the former key are not this client's
  FEDGE_TRY(subscription,
            options_.directory->watch(
                {{dht::node_key(key, options_.run)}, options_.every}, [this, client](const auto& change) {
                  if (change.record == nullptr) return;  // a disconnect is seen on the client's link
                  const auto* status = std::get_if<dht::NodeStatus>(&change.record->content);
                  if (status != nullptr) on_record_(client, status->record);
                }));
  followed_.emplace(client, Followed{key, std::move(subscription)});
  return {};
}

}  // namespace fedge::server
