// Encodes a client's status record (core/node_record.h) as the NodeStatus of dht/proto/directory.proto: the
// format sent to the coordinator over the client's link and stored in a journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/node_record.h"
#include "core/result.h"
#include "protocol/limits.h"

namespace fedge::dht {

inline constexpr std::uint32_t kNodeStatusVersion = 1;
inline constexpr std::size_t kMaxLabels = 900;

// Labels are rounded to single precision. kInvalid: a record that decode_node_record() would refuse.
Result<std::vector<std::byte>> encode_node_record(const NodeRecord& record);

// kUnsupported: another version. kInvalid: not the format, longer than protocol::kMaxRecordBytes, more than
// kMaxLabels labels, a number that is not finite or out of range. The message names the field.
Result<NodeRecord> decode_node_record(std::span<const std::byte> bytes);

}  // namespace fedge::dht
