#include "protocol/wire_lengths.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>

namespace fedge::protocol {

bool lengths_fit(std::span<const std::byte> bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
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
      default:  // the begin or end of a group: its fields are among the others
        break;
    }
    if (!fits) return false;
  }
  return in.ConsumedEntireMessage();
}

}  // namespace fedge::protocol
