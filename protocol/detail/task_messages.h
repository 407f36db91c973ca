// Converts the messages about a client's tasks to and from protobuf. Private to the codec.
#pragma once

#include "core/result.h"
#include "proto/fedge.pb.h"
#include "protocol/messages.h"

namespace fedge::protocol {

v1::TrainRequest message_to_wire(const TrainRequest& message);
v1::UpdateOffer message_to_wire(const UpdateOffer& message);
v1::TaskFailed message_to_wire(const TaskFailed& message);
v1::UpdateVerdict message_to_wire(const UpdateVerdict& message);
v1::CancelTask message_to_wire(const CancelTask& message);

Result<Message> message_from_wire(const v1::TrainRequest& wire);
Result<Message> message_from_wire(const v1::UpdateOffer& wire);
Result<Message> message_from_wire(const v1::TaskFailed& wire);
Result<Message> message_from_wire(const v1::UpdateVerdict& wire);
Result<Message> message_from_wire(const v1::CancelTask& wire);

}  // namespace fedge::protocol
