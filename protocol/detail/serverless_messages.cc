#include "protocol/detail/serverless_messages.h"

#include <algorithm>
#include <cmath>

#include "protocol/detail/field_reader.h"
#include "protocol/detail/wire_values.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

Result<AggregateUpdates::Part> part_from_wire(const v1::AggregatePart& wire) {
  FEDGE_TRY(object, digest_from_wire(wire.object()));
  if (wire.weight() < 1 || wire.weight() > kMaxSamples) return invalid("weight is not between 1 and 2^40");
  if (wire.steps() < 1) return invalid("steps is 0");
  if (!std::isfinite(wire.factor()) || wire.factor() < 0)
    return invalid("factor is not a finite number of at least 0");
  return AggregateUpdates::Part{object, SampleCount(wire.weight()), wire.steps(), wire.factor()};
}

}  // namespace

v1::ServerlessUpdate message_to_wire(const ServerlessUpdate& message) {
  auto wire = begun<v1::ServerlessUpdate>(message.run, message.task());
  *wire.mutable_update() = to_wire(message.update);
  return wire;
}

v1::UpdateHeld message_to_wire(const UpdateHeld& message) {
  auto wire = begun<v1::UpdateHeld>(message.run, message.task());
  wire.set_object(to_wire(message.object));
  wire.set_sound(message.sound);
  if (message.sound) return wire;
  wire.set_code(to_wire(message.code));
  wire.set_reason(message.reason);
  return wire;
}

v1::AggregateUpdates message_to_wire(const AggregateUpdates& message) {
  auto wire = begun<v1::AggregateUpdates>(message.run, message.task());
  for (const AggregateUpdates::Part& part : message.parts) {
    v1::AggregatePart& added = *wire.add_parts();
    added.set_object(to_wire(part.object));
    added.set_weight(part.weight.value());
    added.set_steps(part.steps);
    added.set_factor(part.factor);
  }
  return wire;
}

v1::AggregateMade message_to_wire(const AggregateMade& message) {
  auto wire = begun<v1::AggregateMade>(message.run, message.task());
  *wire.mutable_model() = to_wire(message.model);
  return wire;
}

Result<Message> message_from_wire(const v1::ServerlessUpdate& wire) {
  FieldReader reader;
  return reader.finish(ServerlessUpdate{RunId(wire.run()), RoundNumber(wire.round()), TrackId(wire.track()),
                                        reader.take(from_wire(wire.update()), "update")});
}

Result<Message> message_from_wire(const v1::UpdateHeld& wire) {
  FieldReader reader;
  UpdateHeld message{.run = RunId(wire.run()),
                     .round = RoundNumber(wire.round()),
                     .track = TrackId(wire.track()),
                     .object = reader.take(digest_from_wire(wire.object()), "object"),
                     .sound = wire.sound(),
                     .code = from_wire(wire.code()),
                     .reason = reader.text(wire.reason(), "reason")};
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::AggregateUpdates& wire) {
  FieldReader reader;
  AggregateUpdates message{.run = RunId(wire.run()),
                           .round = RoundNumber(wire.round()),
                           .track = TrackId(wire.track()),
                           .parts = {}};
  reader.require(wire.parts_size() >= 1, "parts is empty");
  for (const v1::AggregatePart& part : wire.parts()) {
    if (reader.failed()) break;
    message.parts.push_back(reader.take(part_from_wire(part), "parts"));
  }
  reader.require(std::ranges::is_sorted(message.parts, {}, &AggregateUpdates::Part::object),
                 "parts are not in ascending order of their objects");
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::AggregateMade& wire) {
  FieldReader reader;
  return reader.finish(AggregateMade{RunId(wire.run()), RoundNumber(wire.round()), TrackId(wire.track()),
                                     reader.take(from_wire(wire.model()), "model")});
}

}  // namespace fedge::protocol
