// What a client says about itself (core/node_record.h) as a record of the directory.
// Bytes, little-endian: version (1 byte, 1), round (4), sequence (8), latency in milliseconds (8, IEEE 754
// double), packet loss (8, double), number of labels (2), labels (4 each, IEEE 754 single).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/node_record.h"
#include "core/result.h"
#include "dht/directory.h"

namespace fedge::dht {

inline constexpr std::uint8_t kNodeRecordVersion = 1;
inline constexpr std::size_t kMaxLabels = 1000;
static_assert(1 + 4 + 8 + 8 + 8 + 2 + 4 * kMaxLabels <= protocol::kMaxRecordBytes);

// Where a client's record lies: the SHA-256 of its number as four little-endian bytes.
Key node_key(ClientId client);

// Labels are rounded to single precision. kInvalid: what decode_node_record() would refuse.
Result<std::vector<std::byte>> encode_node_record(const NodeRecord& record);

// kUnsupported: another version. kInvalid: cut off, too long, more than kMaxLabels labels, a latency that is
// not finite or negative, a loss outside [0, 1], a label that is not finite. The message names the field.
Result<NodeRecord> decode_node_record(std::span<const std::byte> bytes);

}  // namespace fedge::dht
