// Converts the messages of split training to and from protobuf. Private to the codec.
#pragma once

#include "core/result.h"
#include "proto/fedge.pb.h"
#include "protocol/messages.h"

namespace fedge::protocol {

v1::SplitValues message_to_wire(const SplitValues& message);
v1::SplitTaken message_to_wire(const SplitTaken& message);
v1::SplitEnded message_to_wire(const SplitEnded& message);
v1::SplitKept message_to_wire(const SplitKept& message);
v1::SplitRefused message_to_wire(const SplitRefused& message);

Result<Message> message_from_wire(const v1::SplitValues& wire);
Result<Message> message_from_wire(const v1::SplitTaken& wire);
Result<Message> message_from_wire(const v1::SplitEnded& wire);
Result<Message> message_from_wire(const v1::SplitKept& wire);
Result<Message> message_from_wire(const v1::SplitRefused& wire);

}  // namespace fedge::protocol
