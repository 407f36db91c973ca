// Converts records and contents to and from the messages of directory.proto. Private to dht/.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "dht/record.h"
#include "proto/directory.pb.h"
#include "protocol/limits.h"
#include "protocol/wire_lengths.h"

namespace fedge::dht {

namespace wire = ::fedge::directory::v1;

// Parses a message; checks its length fields first.
template <class Message>
bool parse_message(std::span<const std::byte> bytes, Message& out) {
  return bytes.size() <= protocol::kMaxHeader && protocol::lengths_fit(bytes) &&
         out.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Copies the field into the array; false unless it has exactly as many bytes.
template <std::size_t kSize>
bool take_bytes(const std::string& field, std::array<std::uint8_t, kSize>& out) {
  if (field.size() != kSize) return false;
  std::copy(field.begin(), field.end(), out.begin());
  return true;
}

void to_wire(const NodeRecord& record, wire::NodeStatus& out);
void to_wire(const Content& content, wire::DirectoryRecord& out);

// The error names the invalid field.
Result<NodeRecord> from_wire(const wire::NodeStatus& status);
Result<Content> content_from_wire(const wire::DirectoryRecord& record);

}  // namespace fedge::dht
