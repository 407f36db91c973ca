// Converts the messages of swarms to and from protobuf. Private to the codec.
#pragma once

#include "core/result.h"
#include "proto/fedge.pb.h"
#include "protocol/messages.h"

namespace fedge::protocol {

v1::SwarmMembers message_to_wire(const SwarmMembers& message);
v1::ChunksHeld message_to_wire(const ChunksHeld& message);
v1::ChunksAdded message_to_wire(const ChunksAdded& message);
v1::SwarmState message_to_wire(const SwarmState& message);
v1::ChunkCancelled message_to_wire(const ChunkCancelled& message);

Result<Message> message_from_wire(const v1::SwarmMembers& wire);
Result<Message> message_from_wire(const v1::ChunksHeld& wire);
Result<Message> message_from_wire(const v1::ChunksAdded& wire);
Result<Message> message_from_wire(const v1::SwarmState& wire);
Result<Message> message_from_wire(const v1::ChunkCancelled& wire);

}  // namespace fedge::protocol
