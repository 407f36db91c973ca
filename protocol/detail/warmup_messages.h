// Converts the messages of a round's warm-up to and from protobuf. Private to the codec.
#pragma once

#include "core/result.h"
#include "proto/fedge.pb.h"
#include "protocol/messages.h"

namespace fedge::protocol {

v1::WarmupPlan message_to_wire(const WarmupPlan& message);
v1::WarmupSlot message_to_wire(const WarmupSlot& message);
v1::WarmupOver message_to_wire(const WarmupOver& message);
v1::SealedChunk message_to_wire(const SealedChunk& message);

Result<Message> message_from_wire(const v1::WarmupPlan& wire);
Result<Message> message_from_wire(const v1::WarmupSlot& wire);
Result<Message> message_from_wire(const v1::WarmupOver& wire);
Result<Message> message_from_wire(const v1::SealedChunk& wire);

}  // namespace fedge::protocol
