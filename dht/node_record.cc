#include "dht/node_record.h"

#include <cmath>
#include <limits>
#include <string>

#include "dht/detail/wire.h"

namespace fedge::dht {
namespace {

Error refused(const std::string& what) { return invalid("node record: " + what); }

Result<void> check_amount(const std::optional<double>& value, const std::string& what) {
  if (!value || (std::isfinite(*value) && *value >= 0)) return {};
  return refused(what + " of " + std::to_string(*value) + "; expected a finite number of at least 0");
}

Result<void> check_share(const std::optional<double>& value, const std::string& what) {
  if (!value || (*value >= 0 && *value <= 1)) return {};
  return refused(what + " of " + std::to_string(*value) + "; expected a fraction from 0 to 1");
}

Result<void> check(const NodeRecord& record) {
  FEDGE_TRY_VOID(check_amount(record.latency_ms, "a latency in milliseconds"));
  FEDGE_TRY_VOID(check_share(record.packet_loss, "a packet loss"));
  FEDGE_TRY_VOID(check_amount(record.freshness, "a freshness in seconds"));
  FEDGE_TRY_VOID(check_amount(record.utility, "a utility"));
  FEDGE_TRY_VOID(check_share(record.availability, "an availability"));
  FEDGE_TRY_VOID(check_share(record.battery, "a battery level"));
  if (record.labels.size() > kMaxLabels)
    return refused(std::to_string(record.labels.size()) + " labels; at most " + std::to_string(kMaxLabels) +
                   " are allowed");
  for (std::size_t i = 0; i < record.labels.size(); ++i)
    if (!(std::abs(record.labels[i]) <= std::numeric_limits<float>::max()))
      return refused("label " + std::to_string(i) + " is " + std::to_string(record.labels[i]) +
                     "; expected a finite single-precision number");
  return {};
}

}  // namespace

void to_wire(const NodeRecord& record, wire::NodeStatus& out) {
  out.set_version(kNodeStatusVersion);
  out.set_round(record.round);
  out.set_sequence(record.sequence);
  if (record.latency_ms) out.set_latency_ms(*record.latency_ms);
  if (record.packet_loss) out.set_packet_loss(*record.packet_loss);
  if (record.freshness) out.set_freshness(*record.freshness);
  if (record.utility) out.set_utility(*record.utility);
  if (record.availability) out.set_availability(*record.availability);
  if (record.battery) out.set_battery(*record.battery);
  for (const double label : record.labels) out.add_labels(static_cast<float>(label));
}

Result<NodeRecord> from_wire(const wire::NodeStatus& status) {
  if (status.version() != kNodeStatusVersion)
    return Error{ErrorCode::kUnsupported,
                 "node record: its format version is " + std::to_string(status.version()) +
                     ", but this program supports version " + std::to_string(kNodeStatusVersion)};
  NodeRecord record{.round = status.round(), .sequence = status.sequence()};
  if (status.has_latency_ms()) record.latency_ms = status.latency_ms();
  if (status.has_packet_loss()) record.packet_loss = status.packet_loss();
  if (status.has_freshness()) record.freshness = status.freshness();
  if (status.has_utility()) record.utility = status.utility();
  if (status.has_availability()) record.availability = status.availability();
  if (status.has_battery()) record.battery = status.battery();
  record.labels.assign(status.labels().begin(), status.labels().end());
  FEDGE_TRY_VOID(check(record));
  return record;
}

Result<std::vector<std::byte>> encode_node_record(const NodeRecord& record) {
  FEDGE_TRY_VOID(check(record));
  wire::NodeStatus status;
  to_wire(record, status);
  std::vector<std::byte> bytes(status.ByteSizeLong());
  status.SerializeToArray(bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

Result<NodeRecord> decode_node_record(std::span<const std::byte> bytes) {
  if (bytes.empty()) return refused("it is empty");
  if (bytes.size() > protocol::kMaxRecordBytes)
    return refused(std::to_string(bytes.size()) + " bytes; at most " +
                   std::to_string(protocol::kMaxRecordBytes) + " are allowed");
  wire::NodeStatus status;
  if (!parse_message(bytes, status)) return refused("its bytes are not a valid NodeStatus message");
  return from_wire(status);
}

}  // namespace fedge::dht
