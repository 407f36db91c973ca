// Converts the messages of secure aggregation to and from protobuf. Private to the codec.
#pragma once

#include "core/result.h"
#include "proto/fedge.pb.h"
#include "protocol/messages.h"

namespace fedge::protocol {

v1::SecureKeys message_to_wire(const SecureKeys& message);
v1::SecureRoster message_to_wire(const SecureRoster& message);
v1::SecureShares message_to_wire(const SecureShares& message);
v1::SecurePeerShares message_to_wire(const SecurePeerShares& message);
v1::SecureSurvivors message_to_wire(const SecureSurvivors& message);
v1::SecureConsent message_to_wire(const SecureConsent& message);
v1::SecureConsents message_to_wire(const SecureConsents& message);
v1::SecureUnmask message_to_wire(const SecureUnmask& message);

Result<Message> message_from_wire(const v1::SecureKeys& wire);
Result<Message> message_from_wire(const v1::SecureRoster& wire);
Result<Message> message_from_wire(const v1::SecureShares& wire);
Result<Message> message_from_wire(const v1::SecurePeerShares& wire);
Result<Message> message_from_wire(const v1::SecureSurvivors& wire);
Result<Message> message_from_wire(const v1::SecureConsent& wire);
Result<Message> message_from_wire(const v1::SecureConsents& wire);
Result<Message> message_from_wire(const v1::SecureUnmask& wire);

}  // namespace fedge::protocol
