// Whether the fields of a protobuf message lie within it, before protobuf believes their lengths: for a
// message in another that claims to be longer than all there is, it would reserve up to 50 MB for a field of
// it.
#pragma once

#include <cstddef>
#include <span>

namespace fedge::protocol {

// False if a field of the outermost message reaches beyond its end, or its bytes are no fields; a message
// inside it is then as long as it says, so that its fields are checked against a length that is true. One
// within that is not: no message of ours has any.
bool lengths_fit(std::span<const std::byte> message);

}  // namespace fedge::protocol
