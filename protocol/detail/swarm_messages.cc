#include "protocol/detail/swarm_messages.h"

#include <set>

#include "protocol/detail/field_reader.h"
#include "protocol/detail/wire_values.h"
#include "protocol/session/endpoint.h"

namespace fedge::protocol {
namespace {

constexpr std::size_t kMaxBitBytes = (kMaxChunks + 7) / 8;

Result<SwarmMember> member_from_wire(const v1::SwarmMember& wire) {
  FEDGE_TRY(key, key_from_wire(wire.key()));
  if (!wire.address().empty()) {
    FEDGE_TRY_VOID(check_text(wire.address(), kMaxAddressText, "address"));
    FEDGE_TRY(address, parse_listens(wire.address()));
    if (address.host.empty()) return invalid("address: the host is missing");
  }
  return SwarmMember{ClientId(wire.client()), key, wire.address()};
}

}  // namespace

v1::SwarmMembers message_to_wire(const SwarmMembers& message) {
  v1::SwarmMembers wire;
  wire.set_object(to_wire(message.object));
  for (const SwarmMember& member : message.join) {
    v1::SwarmMember& added = *wire.add_join();
    added.set_client(member.client.value());
    added.set_key(to_wire(member.key));
    added.set_address(member.address);
  }
  for (const ClientId client : message.leave) wire.add_leave(client.value());
  return wire;
}

v1::ChunksHeld message_to_wire(const ChunksHeld& message) {
  v1::ChunksHeld wire;
  wire.set_object(to_wire(message.object));
  wire.set_bits(message.bits.data(), message.bits.size());
  wire.set_wanted(message.wanted.data(), message.wanted.size());
  wire.set_opened(message.opened);
  return wire;
}

v1::ChunksAdded message_to_wire(const ChunksAdded& message) {
  v1::ChunksAdded wire;
  wire.set_object(to_wire(message.object));
  for (const std::uint32_t chunk : message.chunks) wire.add_chunks(chunk);
  return wire;
}

v1::SwarmState message_to_wire(const SwarmState& message) {
  v1::SwarmState wire;
  wire.set_choking(message.choking);
  wire.set_interested(message.interested);
  return wire;
}

v1::ChunkCancelled message_to_wire(const ChunkCancelled& message) {
  v1::ChunkCancelled wire;
  wire.set_object(to_wire(message.object));
  wire.set_chunk(message.chunk);
  return wire;
}

Result<Message> message_from_wire(const v1::SwarmMembers& wire) {
  FieldReader reader;
  SwarmMembers message{
      .object = reader.take(digest_from_wire(wire.object()), "object"), .join = {}, .leave = {}};
  std::set<std::uint32_t> named;
  for (const v1::SwarmMember& member : wire.join()) {
    message.join.push_back(reader.take(member_from_wire(member), "join"));
    reader.require(named.insert(member.client()).second, "join lists a client twice");
    if (reader.failed()) break;
  }
  for (const std::uint32_t client : wire.leave()) message.leave.emplace_back(client);
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::ChunksHeld& wire) {
  FieldReader reader;
  reader.require(!wire.bits().empty() && wire.bits().size() <= kMaxBitBytes,
                 "bits is not 1 to 3750 bytes long");
  reader.require(wire.wanted().size() <= kMaxBitBytes, "wanted is more than 3750 bytes");
  const auto bits = std::as_bytes(std::span(wire.bits()));
  const auto wanted = std::as_bytes(std::span(wire.wanted()));
  return reader.finish(ChunksHeld{reader.take(digest_from_wire(wire.object()), "object"),
                                  {bits.begin(), bits.end()},
                                  {wanted.begin(), wanted.end()},
                                  wire.opened()});
}

Result<Message> message_from_wire(const v1::ChunksAdded& wire) {
  FieldReader reader;
  reader.require(wire.chunks_size() >= 1, "chunks is empty");
  return reader.finish(ChunksAdded{reader.take(digest_from_wire(wire.object()), "object"),
                                   {wire.chunks().begin(), wire.chunks().end()}});
}

Result<Message> message_from_wire(const v1::SwarmState& wire) {
  return Message(SwarmState{wire.choking(), wire.interested()});
}

Result<Message> message_from_wire(const v1::ChunkCancelled& wire) {
  FieldReader reader;
  return reader.finish(ChunkCancelled{reader.take(digest_from_wire(wire.object()), "object"), wire.chunk()});
}

}  // namespace fedge::protocol
