#include "protocol/detail/warmup_messages.h"

#include <algorithm>

#include "protocol/detail/field_reader.h"
#include "protocol/detail/wire_values.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

constexpr std::uint32_t kMaxDegree = 200;  // upper limit in run files

Result<WarmupSlot::Ask> ask_from_wire(const v1::WarmupAsk& wire) {
  FEDGE_TRY(object, digest_from_wire(wire.object()));
  return WarmupSlot::Ask{object, wire.chunk(), ClientId(wire.from())};
}

Result<WarmupSlot::Spray> spray_from_wire(const v1::WarmupSpray& wire) {
  FEDGE_TRY(key, key_from_wire(wire.key()));
  return WarmupSlot::Spray{wire.chunk(), ClientId(wire.over()), ClientId(wire.to()), key};
}

// Checks that the numbers fit each other; the receiver checks what they ask for.
void check(const WarmupPlan& plan, FieldReader& reader) {
  reader.require(plan.members >= 3 && plan.members <= kMaxAggregated, "members is not between 3 and 4096");
  reader.require(plan.number < plan.members, "number is not less than members");
  reader.require(plan.degree >= 1 && plan.degree < plan.members && plan.degree <= kMaxDegree,
                 "degree is not between 1 and 200, or not below members");
  reader.require(plan.chunks >= 1 && plan.chunks <= kMaxChunks, "chunks is not between 1 and 30000");
  reader.require(std::uint64_t{plan.members} * plan.chunks <= kMaxWarmupChunks,
                 "members times chunks is above 4000000");
  reader.require(plan.kappa <= plan.chunks && plan.spray <= plan.chunks, "kappa or spray is above chunks");
  const auto& neighbours = plan.neighbours;
  for (const auto& neighbour : neighbours)
    reader.require(neighbour.number < plan.members && neighbour.number != plan.number,
                   "a neighbour is not another member");
  const auto later = [](const auto& a, const auto& b) { return a.number >= b.number; };
  reader.require(std::ranges::adjacent_find(neighbours, later) == neighbours.end(),
                 "neighbours are not in ascending order of their numbers");
}

}  // namespace

v1::WarmupPlan message_to_wire(const WarmupPlan& message) {
  auto wire = begun<v1::WarmupPlan>(message.run, message.task());
  wire.set_swarm(to_wire(message.swarm));
  wire.set_commitment(to_wire(message.commitment));
  wire.set_members(message.members);
  wire.set_number(message.number);
  wire.set_degree(message.degree);
  wire.set_chunks(message.chunks);
  wire.set_cover(message.cover);
  wire.set_kappa(message.kappa);
  wire.set_lag(message.lag);
  wire.set_spray(message.spray);
  for (const WarmupPlan::Neighbour& neighbour : message.neighbours) {
    v1::WarmupNeighbour& added = *wire.add_neighbours();
    added.set_number(neighbour.number);
    added.set_client(neighbour.client.value());
  }
  return wire;
}

v1::WarmupSlot message_to_wire(const WarmupSlot& message) {
  auto wire = begun<v1::WarmupSlot>(message.run, message.task());
  wire.set_slot(message.slot);
  for (const WarmupSlot::Ask& ask : message.asks) {
    v1::WarmupAsk& added = *wire.add_asks();
    added.set_object(to_wire(ask.object));
    added.set_chunk(ask.chunk);
    added.set_from(ask.from.value());
  }
  for (const WarmupSlot::Spray& spray : message.sprays) {
    v1::WarmupSpray& added = *wire.add_sprays();
    added.set_chunk(spray.chunk);
    added.set_over(spray.over.value());
    added.set_to(spray.to.value());
    added.set_key(to_wire(spray.key));
  }
  return wire;
}

v1::WarmupOver message_to_wire(const WarmupOver& message) {
  auto wire = begun<v1::WarmupOver>(message.run, message.task());
  wire.set_seed(message.seed);
  wire.set_failure(message.failure);
  return wire;
}

v1::SealedChunk message_to_wire(const SealedChunk& message) {
  v1::SealedChunk wire;
  wire.set_swarm(to_wire(message.swarm));
  wire.set_to(message.to.value());
  wire.set_sealed(message.sealed.data(), message.sealed.size());
  return wire;
}

Result<Message> message_from_wire(const v1::WarmupPlan& wire) {
  FieldReader reader;
  WarmupPlan plan{.run = RunId(wire.run()),
                  .round = RoundNumber(wire.round()),
                  .track = TrackId(wire.track()),
                  .swarm = reader.take(digest_from_wire(wire.swarm()), "swarm"),
                  .commitment = reader.take(digest_from_wire(wire.commitment()), "commitment"),
                  .members = wire.members(),
                  .number = wire.number(),
                  .degree = wire.degree(),
                  .chunks = wire.chunks(),
                  .cover = wire.cover(),
                  .kappa = wire.kappa(),
                  .lag = wire.lag(),
                  .spray = wire.spray(),
                  .neighbours = {}};
  for (const v1::WarmupNeighbour& neighbour : wire.neighbours())
    plan.neighbours.push_back({neighbour.number(), ClientId(neighbour.client())});
  check(plan, reader);
  return reader.finish(std::move(plan));
}

Result<Message> message_from_wire(const v1::WarmupSlot& wire) {
  FieldReader reader;
  WarmupSlot slot{.run = RunId(wire.run()),
                  .round = RoundNumber(wire.round()),
                  .track = TrackId(wire.track()),
                  .slot = wire.slot(),
                  .asks = {},
                  .sprays = {}};
  for (const v1::WarmupAsk& ask : wire.asks()) slot.asks.push_back(reader.take(ask_from_wire(ask), "asks"));
  for (const v1::WarmupSpray& spray : wire.sprays())
    slot.sprays.push_back(reader.take(spray_from_wire(spray), "sprays"));
  return reader.finish(std::move(slot));
}

Result<Message> message_from_wire(const v1::WarmupOver& wire) {
  FieldReader reader;
  return reader.finish(WarmupOver{RunId(wire.run()), RoundNumber(wire.round()), TrackId(wire.track()),
                                  wire.seed(), reader.text(wire.failure(), "failure")});
}

Result<Message> message_from_wire(const v1::SealedChunk& wire) {
  FieldReader reader;
  reader.require(!wire.sealed().empty() && wire.sealed().size() <= kMaxSealedChunk,
                 "sealed is not 1 to 263168 bytes long");
  if (reader.failed()) return reader.finish(SealedChunk{});
  const auto sealed = std::as_bytes(std::span(wire.sealed()));
  return reader.finish(SealedChunk{reader.take(digest_from_wire(wire.swarm()), "swarm"),
                                   ClientId(wire.to()),
                                   {sealed.begin(), sealed.end()}});
}

}  // namespace fedge::protocol
