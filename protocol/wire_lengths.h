// Whether the fields of a protobuf message lie within it, and are no more than it may have, before protobuf
// believes them: for a message in another that claims to be longer than all there is, it would reserve up to
// 50 MB for a field of it, and for each of a million empty ones sixty bytes. One pass, no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"

namespace fedge::protocol {

// How a repeated field's values may stand together in one piece of bytes.
enum class Packing { kNever, kVarints, kFixed64 };

struct FieldCount {
  int field = 0;
  std::size_t most = 0;
  const char* name = nullptr;
  Packing packing = Packing::kNever;
};

// kInvalid if a field of the outermost message reaches beyond its end, if its bytes are no fields, or if one
// of `counts` comes more often than it may; a message inside it is then as long as it says, so that its
// fields are checked against a length that is true. One within that is not, and what repeats there is not
// counted: no message of ours has any.
Result<void> check_fields(std::span<const std::byte> message, std::span<const FieldCount> counts);
// The same, without counts.
bool lengths_fit(std::span<const std::byte> message);

}  // namespace fedge::protocol
