// Checks, before protobuf parses a message, that its fields lie within it and do not repeat too often.
// Otherwise protobuf would reserve up to 50 MB for a field of a nested message with a false length, and
// sixty bytes for each of a million empty fields. One pass, no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"

namespace fedge::protocol {

// How the values of a repeated field may be packed into one piece.
enum class Packing { kNever, kVarints, kFixed32, kFixed64 };

struct FieldCount {
  int field = 0;
  std::size_t most = 0;
  const char* name = nullptr;
  Packing packing = Packing::kNever;
};

// kInvalid if a field of the outermost message reaches beyond its end, if the bytes are not fields, or if
// one of `counts` is exceeded. The lengths of messages nested directly in it are then true, so protobuf
// checks their fields against them. Deeper nesting and repetition are not checked: our messages have none.
Result<void> check_fields(std::span<const std::byte> message, std::span<const FieldCount> counts);
// The same, without counts.
bool lengths_fit(std::span<const std::byte> message);

}  // namespace fedge::protocol
