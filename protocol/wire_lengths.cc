#include "protocol/wire_lengths.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fedge::protocol {
namespace {

// The number of values in one piece of a repeated field.
std::size_t values_in(std::span<const std::byte> piece, Packing packing) {
  if (packing == Packing::kFixed32) return piece.size() / 4;
  if (packing == Packing::kFixed64) return piece.size() / 8;
  if (packing == Packing::kNever) return 1;
  // Each varint ends with its only byte below 128.
  return static_cast<std::size_t>(
      std::ranges::count_if(piece, [](std::byte byte) { return byte < std::byte{128}; }));
}

}  // namespace

Result<void> check_fields(std::span<const std::byte> bytes, std::span<const FieldCount> counts) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  const Error malformed = invalid("its bytes are not a valid protobuf message");
  std::vector<std::size_t> seen(counts.size());
  while (const std::uint32_t tag = in.ReadTag()) {
    std::uint64_t number = 0;
    std::uint32_t length = 0;
    bool fits = true;
    switch (tag & 7) {
      case 0:
        fits = in.ReadVarint64(&number);
        break;
      case 1:
        fits = in.Skip(8);
        break;
      case 2:
        fits = in.ReadVarint32(&length) && length <= bytes.size() && in.Skip(static_cast<int>(length));
        break;
      case 5:
        fits = in.Skip(4);
        break;
      default:  // start or end of a group: its fields are checked like the others
        break;
    }
    if (!fits) return malformed;
    const auto limited = std::ranges::find(counts, static_cast<int>(tag >> 3), &FieldCount::field);
    if (limited == counts.end()) continue;
    const auto end = static_cast<std::size_t>(in.CurrentPosition());
    std::size_t& count = seen[static_cast<std::size_t>(limited - counts.begin())];
    count += (tag & 7) == 2 ? values_in(bytes.subspan(end - length, length), limited->packing) : 1;
    if (count > limited->most)
      return invalid(std::string(limited->name) + ": the number of elements is above " +
                     std::to_string(limited->most));
  }
  if (!in.ConsumedEntireMessage()) return malformed;
  return {};
}

bool lengths_fit(std::span<const std::byte> message) { return check_fields(message, {}).has_value(); }

}  // namespace fedge::protocol
