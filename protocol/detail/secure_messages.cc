#include "protocol/detail/secure_messages.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>

#include "protocol/detail/field_reader.h"
#include "protocol/detail/wire_values.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

template <class Wire>
Wire begun(const SecureSession& session) {
  auto wire = protocol::begun<Wire>(session.run, session.task());
  wire.set_attempt(session.attempt);
  return wire;
}

template <class Wire>
SecureSession session_from(const Wire& wire) {
  return {RunId(wire.run()), RoundNumber(wire.round()), TrackId(wire.track()), wire.attempt()};
}

template <class Octets>
void append(std::string& to, const Octets& octets) {
  to.append(reinterpret_cast<const char*>(octets.data()), octets.size());
}

template <class Octets>
std::string bytes_of(const Octets& octets) {
  std::string bytes;
  append(bytes, octets);
  return bytes;
}

// An entry of a list of fixed-size entries.
template <class Octets>
Octets entry(const std::string& bytes, std::size_t index) {
  Octets octets{};
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(index * octets.size()), octets.size(),
              octets.begin());
  return octets;
}

template <class Octets>
Octets fixed(FieldReader& reader, const std::string& bytes, const char* what) {
  reader.require(bytes.size() == Octets().size(), what);
  return bytes.size() == Octets().size() ? entry<Octets>(bytes, 0) : Octets();
}

template <class Numbers>
bool is_ascending(const Numbers& numbers) {
  return std::ranges::adjacent_find(numbers, std::ranges::greater_equal()) == numbers.end();
}

// Whether the numbers are ascending, and each column has its size for each number.
template <class Numbers>
bool is_list(const Numbers& numbers,
             std::initializer_list<std::pair<const std::string*, std::size_t>> columns = {}) {
  const auto count = static_cast<std::size_t>(numbers.size());
  if (!is_ascending(numbers)) return false;
  return std::ranges::all_of(columns, [&](const auto& c) { return c.first->size() == count * c.second; });
}

// Fields that SecureAdvertisement and SecurePeer have in common.
template <class Wire>
void put_keys(const SecureAdvertisement& keys, Wire& wire) {
  wire.set_channel(bytes_of(keys.channel.bytes));
  wire.set_mask(bytes_of(keys.mask.bytes));
  wire.set_commitment(bytes_of(keys.commitment));
  wire.set_fast_aes(keys.fast_aes);
  wire.set_signature(bytes_of(keys.signature));
}

template <class Wire>
SecureAdvertisement keys_from(const Wire& wire, FieldReader& reader) {
  using Key = decltype(ExchangeKey::bytes);
  return {.channel = {fixed<Key>(reader, wire.channel(), "channel is not 32 bytes")},
          .mask = {fixed<Key>(reader, wire.mask(), "mask is not 32 bytes")},
          .commitment = fixed<Digest>(reader, wire.commitment(), "commitment is not 32 bytes"),
          .fast_aes = wire.fast_aes(),
          .signature = fixed<Signature>(reader, wire.signature(), "signature is not 64 bytes")};
}

// Reads from a roster which cells are summed, and each member's coverage.
void read_parts(const v1::SecureRoster& wire, SecureRoster& roster, FieldReader& reader) {
  const auto& bounds = wire.cells();
  reader.require(bounds.size() % 2 == 0, "cells are not pairs");
  std::size_t bytes = 0;
  for (const std::string& coverage : wire.coverages()) bytes += coverage.size();
  reader.require(bytes <= kMaxCoverageBytes, "coverages are more than 524288 bytes");
  if (reader.failed()) return;
  for (int i = 0; i < bounds.size(); i += 2) {
    const Range cell{bounds[i], bounds[i + 1]};
    const std::size_t before = roster.cells.empty() ? 0 : roster.cells.back().end;
    reader.require(cell.begin >= before && cell.begin < cell.end && cell.end <= kMaxParameters,
                   "cells are not ascending, disjoint ranges of a model");
    roster.cells.push_back(cell);
  }
  for (const std::string& coverage : wire.coverages())
    roster.coverages.push_back(reader.take(coverage_from_wire(coverage), "coverages"));
  roster.coverage_of.assign(wire.coverage_of().begin(), wire.coverage_of().end());
}

}  // namespace

v1::SecureKeys message_to_wire(const SecureKeys& message) {
  auto wire = begun<v1::SecureKeys>(message.session);
  put_keys(message.keys, *wire.mutable_keys());
  return wire;
}

v1::SecureRoster message_to_wire(const SecureRoster& message) {
  auto wire = begun<v1::SecureRoster>(message.session);
  wire.set_seed(to_wire(message.seed));
  wire.set_members(message.members);
  wire.set_number(message.number);
  wire.set_degree(message.degree);
  wire.set_threshold(message.threshold);
  wire.set_complete(message.complete);
  wire.set_cipher(static_cast<v1::StreamCipher>(message.cipher));
  for (const Range& cell : message.cells) {
    wire.add_cells(cell.begin);
    wire.add_cells(cell.end);
  }
  for (const Coverage& coverage : message.coverages) wire.add_coverages(to_wire(coverage));
  for (const std::uint32_t kind : message.coverage_of) wire.add_coverage_of(kind);
  for (const SecureRoster::Peer& peer : message.peers) {
    v1::SecurePeer& added = *wire.add_peers();
    added.set_number(peer.number);
    added.set_client(peer.client.value());
    added.set_identity(to_wire(peer.identity));
    put_keys(peer.keys, added);
  }
  return wire;
}

v1::SecureShares message_to_wire(const SecureShares& message) {
  auto wire = begun<v1::SecureShares>(message.session);
  for (const SecureShares::Sealed& sealed : message.shares) {
    wire.add_to(sealed.to);
    append(*wire.mutable_boxes(), sealed.box);
    append(*wire.mutable_checks(), sealed.check);
  }
  return wire;
}

v1::SecurePeerShares message_to_wire(const SecurePeerShares& message) {
  auto wire = begun<v1::SecurePeerShares>(message.session);
  for (const SecurePeerShares::Sealed& sealed : message.shares) {
    wire.add_from(sealed.from);
    append(*wire.mutable_boxes(), sealed.box);
  }
  return wire;
}

v1::SecureSurvivors message_to_wire(const SecureSurvivors& message) {
  auto wire = begun<v1::SecureSurvivors>(message.session);
  for (const std::uint32_t number : message.numbers) wire.add_numbers(number);
  return wire;
}

v1::SecureConsent message_to_wire(const SecureConsent& message) {
  auto wire = begun<v1::SecureConsent>(message.session);
  wire.set_signature(bytes_of(message.signature));
  return wire;
}

v1::SecureConsents message_to_wire(const SecureConsents& message) {
  auto wire = begun<v1::SecureConsents>(message.session);
  for (const SecureConsents::Consent& consent : message.consents) {
    wire.add_numbers(consent.number);
    append(*wire.mutable_signatures(), consent.signature);
  }
  return wire;
}

v1::SecureUnmask message_to_wire(const SecureUnmask& message) {
  auto wire = begun<v1::SecureUnmask>(message.session);
  for (const SecureUnmask::Survivor& survivor : message.survivors) {
    wire.add_survivors(survivor.number);
    append(*wire.mutable_self_masks(), survivor.self_mask);
  }
  for (const SecureUnmask::Dropped& dropped : message.dropped) {
    wire.add_dropped(dropped.number);
    append(*wire.mutable_mask_keys(), dropped.mask_key);
    append(*wire.mutable_pair_keys(), dropped.pair_key);
  }
  return wire;
}

Result<Message> message_from_wire(const v1::SecureKeys& wire) {
  FieldReader reader;
  return reader.finish(SecureKeys{session_from(wire), keys_from(wire.keys(), reader)});
}

Result<Message> message_from_wire(const v1::SecureRoster& wire) {
  FieldReader reader;
  SecureRoster roster{.session = session_from(wire),
                      .seed = reader.take(digest_from_wire(wire.seed()), "seed"),
                      .members = wire.members(),
                      .number = wire.number(),
                      .degree = wire.degree(),
                      .threshold = wire.threshold(),
                      .complete = wire.complete(),
                      .cipher = static_cast<StreamCipher>(wire.cipher()),
                      .cells = {},
                      .coverages = {},
                      .coverage_of = {},
                      .peers = {}};
  reader.require(wire.members() >= 1 && wire.members() <= kMaxSecureMembers,
                 "members is not between 1 and 65536");
  reader.require(wire.number() < wire.members(), "number is not less than members");
  reader.require(wire.cipher() == v1::CIPHER_AES256_CTR || wire.cipher() == v1::CIPHER_CHACHA20,
                 "cipher is not known to this version");
  read_parts(wire, roster, reader);
  if (reader.failed()) return reader.finish(std::move(roster));
  for (const v1::SecurePeer& peer : wire.peers())
    roster.peers.push_back({.number = peer.number(),
                            .client = ClientId(peer.client()),
                            .identity = reader.take(key_from_wire(peer.identity()), "identity"),
                            .keys = keys_from(peer, reader)});
  reader.require(
      std::ranges::adjacent_find(roster.peers, std::ranges::greater_equal(), &SecureRoster::Peer::number) ==
              roster.peers.end() &&
          std::ranges::all_of(roster.peers, [&](const auto& peer) { return peer.number < roster.members; }),
      "peers are not ascending members");
  return reader.finish(std::move(roster));
}

Result<Message> message_from_wire(const v1::SecureShares& wire) {
  FieldReader reader;
  SecureShares message{session_from(wire), {}};
  reader.require(is_list(wire.to(), {{&wire.boxes(), kSealedShares}, {&wire.checks(), 16}}),
                 "shares are not in ascending order, or not 112 bytes each");
  if (reader.failed()) return reader.finish(std::move(message));
  for (std::size_t i = 0; i < static_cast<std::size_t>(wire.to_size()); ++i)
    message.shares.push_back({.to = wire.to(static_cast<int>(i)),
                              .box = entry<decltype(SecureShares::Sealed::box)>(wire.boxes(), i),
                              .check = entry<decltype(SecureShares::Sealed::check)>(wire.checks(), i)});
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::SecurePeerShares& wire) {
  FieldReader reader;
  SecurePeerShares message{session_from(wire), {}};
  reader.require(is_list(wire.from(), {{&wire.boxes(), kSealedShares}}),
                 "shares are not in ascending order, or not 96 bytes each");
  if (reader.failed()) return reader.finish(std::move(message));
  for (std::size_t i = 0; i < static_cast<std::size_t>(wire.from_size()); ++i)
    message.shares.push_back({.from = wire.from(static_cast<int>(i)),
                              .box = entry<decltype(SecurePeerShares::Sealed::box)>(wire.boxes(), i)});
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::SecureSurvivors& wire) {
  FieldReader reader;
  reader.require(is_list(wire.numbers()), "numbers are not in ascending order");
  return reader.finish(SecureSurvivors{session_from(wire), {wire.numbers().begin(), wire.numbers().end()}});
}

Result<Message> message_from_wire(const v1::SecureConsent& wire) {
  FieldReader reader;
  return reader.finish(SecureConsent{
      session_from(wire), fixed<Signature>(reader, wire.signature(), "signature is not 64 bytes")});
}

Result<Message> message_from_wire(const v1::SecureConsents& wire) {
  FieldReader reader;
  SecureConsents message{session_from(wire), {}};
  reader.require(is_list(wire.numbers(), {{&wire.signatures(), Signature().size()}}),
                 "consents are not in ascending order, or not 64 bytes each");
  if (reader.failed()) return reader.finish(std::move(message));
  for (std::size_t i = 0; i < static_cast<std::size_t>(wire.numbers_size()); ++i)
    message.consents.push_back({wire.numbers(static_cast<int>(i)), entry<Signature>(wire.signatures(), i)});
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::SecureUnmask& wire) {
  using Share = SecureUnmask::ShareBytes;
  using PairKey = decltype(SecureUnmask::Dropped::pair_key);
  FieldReader reader;
  SecureUnmask message{session_from(wire), {}, {}};
  reader.require(is_list(wire.survivors(), {{&wire.self_masks(), Share().size()}}),
                 "survivors are not in ascending order, or not 40 bytes each");
  reader.require(
      is_list(wire.dropped(), {{&wire.mask_keys(), Share().size()}, {&wire.pair_keys(), PairKey().size()}}),
      "dropped are not in ascending order, or not 72 bytes each");
  if (reader.failed()) return reader.finish(std::move(message));
  for (std::size_t i = 0; i < static_cast<std::size_t>(wire.survivors_size()); ++i)
    message.survivors.push_back({wire.survivors(static_cast<int>(i)), entry<Share>(wire.self_masks(), i)});
  for (std::size_t i = 0; i < static_cast<std::size_t>(wire.dropped_size()); ++i)
    message.dropped.push_back({.number = wire.dropped(static_cast<int>(i)),
                               .mask_key = entry<Share>(wire.mask_keys(), i),
                               .pair_key = entry<PairKey>(wire.pair_keys(), i)});
  return reader.finish(std::move(message));
}

}  // namespace fedge::protocol
