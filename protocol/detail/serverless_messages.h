// Converts the messages of serverless rounds to and from protobuf. Private to the codec.
#pragma once

#include "core/result.h"
#include "proto/fedge.pb.h"
#include "protocol/messages.h"

namespace fedge::protocol {

v1::ServerlessUpdate message_to_wire(const ServerlessUpdate& message);
v1::UpdateHeld message_to_wire(const UpdateHeld& message);
v1::AggregateUpdates message_to_wire(const AggregateUpdates& message);
v1::AggregateMade message_to_wire(const AggregateMade& message);

Result<Message> message_from_wire(const v1::ServerlessUpdate& wire);
Result<Message> message_from_wire(const v1::UpdateHeld& wire);
Result<Message> message_from_wire(const v1::AggregateUpdates& wire);
Result<Message> message_from_wire(const v1::AggregateMade& wire);

}  // namespace fedge::protocol
