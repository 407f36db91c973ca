#include "dht/node_record.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "protocol/codecs/little_endian.h"

namespace fedge::dht {
namespace {

constexpr std::size_t kHeaderBytes = 1 + 4 + 8 + 8 + 8 + 2;

template <class T>
T take(std::span<const std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return protocol::swapped_if_big_endian(value);
}

Result<void> check(const NodeRecord& record) {
  const std::string whose = "node record: ";
  if (!std::isfinite(record.latency_ms) || record.latency_ms < 0)
    return invalid(whose + "a latency of " + std::to_string(record.latency_ms) +
                   " ms, expected a finite number of at least 0");
  if (!(record.packet_loss >= 0 && record.packet_loss <= 1))
    return invalid(whose + "a packet loss of " + std::to_string(record.packet_loss) +
                   ", expected a share from 0 to 1");
  if (record.labels.size() > kMaxLabels)
    return invalid(whose + std::to_string(record.labels.size()) + " labels; at most " +
                   std::to_string(kMaxLabels) + " are allowed");
  for (std::size_t i = 0; i < record.labels.size(); ++i)
    if (!(std::abs(record.labels[i]) <= std::numeric_limits<float>::max()))
      return invalid(whose + "label " + std::to_string(i) + " is " + std::to_string(record.labels[i]) +
                     ", expected a finite number in single precision");
  return {};
}

}  // namespace

Key node_key(ClientId client) {
  std::vector<std::byte> id;
  protocol::append(id, client.value());
  return sha256(std::span<const std::byte>(id));
}

Result<std::vector<std::byte>> encode_node_record(const NodeRecord& record) {
  FEDGE_TRY_VOID(check(record));
  std::vector<std::byte> bytes;
  bytes.reserve(kHeaderBytes + 4 * record.labels.size());
  protocol::append(bytes, kNodeRecordVersion);
  protocol::append(bytes, record.round);
  protocol::append(bytes, record.sequence);
  protocol::append(bytes, record.latency_ms);
  protocol::append(bytes, record.packet_loss);
  protocol::append(bytes, static_cast<std::uint16_t>(record.labels.size()));
  for (const double label : record.labels) protocol::append(bytes, static_cast<float>(label));
  return bytes;
}

Result<NodeRecord> decode_node_record(std::span<const std::byte> bytes) {
  if (bytes.empty()) return invalid("node record: it is empty");
  const auto version = take<std::uint8_t>(bytes);
  if (version != kNodeRecordVersion)
    return Error{ErrorCode::kUnsupported, "node record: version " + std::to_string(version) +
                                              ", this program speaks " + std::to_string(kNodeRecordVersion)};
  if (bytes.size() + 1 < kHeaderBytes)
    return invalid("node record: " + std::to_string(bytes.size() + 1) + " bytes, expected at least " +
                   std::to_string(kHeaderBytes));
  NodeRecord record;
  record.round = take<std::uint32_t>(bytes);
  record.sequence = take<std::uint64_t>(bytes);
  record.latency_ms = take<double>(bytes);
  record.packet_loss = take<double>(bytes);
  const std::size_t labels = take<std::uint16_t>(bytes);
  if (bytes.size() != 4 * labels)
    return invalid("node record: " + std::to_string(labels) + " labels in " + std::to_string(bytes.size()) +
                   " bytes, expected 4 each");
  for (std::size_t i = 0; i < labels; ++i) record.labels.push_back(double{take<float>(bytes)});
  FEDGE_TRY_VOID(check(record));
  return record;
}

}  // namespace fedge::dht
