#include "protocol/codec.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "core/node.h"
#include "core/text.h"
#include "proto/fedge.pb.h"
#include "protocol/detail/field_counts.h"
#include "protocol/detail/field_reader.h"
#include "protocol/detail/secure_messages.h"
#include "protocol/detail/serverless_messages.h"
#include "protocol/detail/swarm_messages.h"
#include "protocol/detail/task_messages.h"
#include "protocol/detail/warmup_messages.h"
#include "protocol/detail/wire_values.h"
#include "protocol/session/endpoint.h"

namespace fedge::protocol {
namespace {

// ---- values to protobuf ----

v1::Hello message_to_wire(const Hello& message) {
  v1::Hello wire;
  wire.set_min_version(message.min_version);
  wire.set_max_version(message.max_version);
  for (const std::string& feature : message.features) wire.add_features(feature);
  wire.set_software(clean_text(message.software, kMaxSoftwareText));
  wire.set_token(message.token);
  wire.set_listens(message.listens);
  return wire;
}

v1::Welcome message_to_wire(const Welcome& message) {
  v1::Welcome wire;
  wire.set_version(message.version);
  for (const std::string& feature : message.features) wire.add_features(feature);
  wire.set_software(clean_text(message.software, kMaxSoftwareText));
  wire.set_client(message.client.value());
  wire.set_pending(message.pending);
  for (const RunId run : message.runs) wire.add_runs(run.value());
  wire.set_spread_ms(to_wire_wait(message.spread));
  return wire;
}

v1::Goodbye message_to_wire(const Goodbye& message) {
  v1::Goodbye wire;
  wire.set_code(to_wire(message.code));
  wire.set_reason(clean_text(message.reason, kMaxText));
  wire.set_retry_after_ms(to_wire_wait(message.retry_after));
  return wire;
}

v1::RunDescription message_to_wire(const RunDescription& message) {
  v1::RunDescription wire;
  wire.set_run(message.run.value());
  wire.set_name(message.name);
  wire.set_seed(message.seed);
  wire.set_task(message.task);
  wire.set_layout(to_wire(message.layout));
  return wire;
}

v1::RunAnswer message_to_wire(const RunAnswer& message) {
  v1::RunAnswer wire;
  wire.set_run(message.run.value());
  wire.set_ready(message.ready);
  if (message.ready) {
    wire.set_samples(message.samples.value());
    wire.set_capability(message.capability);
    return wire;
  }
  wire.set_code(to_wire(message.code));
  wire.set_reason(clean_text(message.reason, kMaxText));
  return wire;
}

v1::PublishRecord message_to_wire(const PublishRecord& message) {
  v1::PublishRecord wire;
  wire.set_run(message.run.value());
  wire.set_round(message.round.value());
  wire.set_sequence(message.sequence);
  wire.set_value(message.value.data(), message.value.size());
  return wire;
}

v1::RunEnded message_to_wire(const RunEnded& message) {
  v1::RunEnded wire;
  wire.set_run(message.run.value());
  wire.set_reason(clean_text(message.reason, kMaxText));
  return wire;
}

// ---- protobuf to values ----

using protocol::message_from_wire;  // also use those of detail/

Result<Message> message_from_wire(const v1::Hello& wire) {
  FieldReader reader;
  if (!wire.listens().empty()) reader.take(parse_listens(wire.listens()), "listens");
  reader.require(wire.min_version() >= 1 && wire.min_version() <= wire.max_version(),
                 "min_version and max_version are not a valid range of versions");
  return reader.finish(Hello{wire.min_version(), wire.max_version(), reader.features(wire.features()),
                             reader.text(wire.software(), "software", kMaxSoftwareText),
                             reader.text(wire.token(), "token"),
                             reader.text(wire.listens(), "listens", kMaxAddressText)});
}

Result<Message> message_from_wire(const v1::Welcome& wire) {
  FieldReader reader;
  const std::chrono::milliseconds spread(wire.spread_ms());
  reader.require(spread <= kMaxRetryAfter, "spread_ms is above 600000");
  reader.require(std::ranges::adjacent_find(wire.runs(), std::ranges::greater_equal()) == wire.runs().end(),
                 "runs are not in ascending order");
  Welcome message{wire.version(), reader.features(wire.features()),
                  reader.text(wire.software(), "software", kMaxSoftwareText), ClientId(wire.client()),
                  wire.pending()};
  for (const std::uint64_t run : wire.runs()) message.runs.emplace_back(run);
  message.spread = spread;
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::Goodbye& wire) {
  FieldReader reader;
  const std::chrono::milliseconds wait(wire.retry_after_ms());
  reader.require(wait <= kMaxRetryAfter, "retry_after_ms is above 600000");
  return reader.finish(Goodbye{from_wire(wire.code()), reader.text(wire.reason(), "reason"), wait});
}

Result<Message> message_from_wire(const v1::RunDescription& wire) {
  FieldReader reader;
  reader.require(!wire.name().empty(), "name is empty");
  return reader.finish(RunDescription{RunId(wire.run()), reader.text(wire.name(), "name"), wire.seed(),
                                      reader.text(wire.task(), "task", kMaxTaskText, LineEnds::kAllowed),
                                      reader.take(digest_from_wire(wire.layout()), "layout")});
}

Result<Message> message_from_wire(const v1::RunAnswer& wire) {
  FieldReader reader;
  reader.require(!wire.ready() || (wire.samples() >= 1 && wire.samples() <= kMaxSamples),
                 "samples is not between 1 and 2^40");
  reader.require(wire.capability() >= 0 && wire.capability() <= 1, "capability is not between 0 and 1");
  return reader.finish(RunAnswer{RunId(wire.run()), wire.ready(), SampleCount(wire.samples()),
                                 from_wire(wire.code()), reader.text(wire.reason(), "reason"),
                                 wire.capability() > 0 ? wire.capability() : 1.0});
}

Result<Message> message_from_wire(const v1::PublishRecord& wire) {
  FieldReader reader;
  reader.require(!wire.value().empty() && wire.value().size() <= kMaxRecordBytes,
                 "value is not 1 to 4096 bytes long");
  const auto b = std::as_bytes(std::span(wire.value()));
  return reader.finish(
      PublishRecord{RunId(wire.run()), RoundNumber(wire.round()), wire.sequence(), {b.begin(), b.end()}});
}

Result<Message> message_from_wire(const v1::RunEnded& wire) {
  FieldReader reader;
  return reader.finish(RunEnded{RunId(wire.run()), reader.text(wire.reason(), "reason")});
}

template <class Wire>
Result<Message> parse(MessageType type, std::span<const std::byte> header) {
  const std::string prefix = std::string(name_of(type)) + ": ";
  Wire wire;
  if (const auto parsed = parse_wire(wire, header, kFieldCounts<Wire>); !parsed)
    return parsed.error().with_prefix(prefix);
  auto message = message_from_wire(wire);
  if (!message) return message.error().with_prefix(prefix);
  return message;
}

}  // namespace

MessageType type_of(const Message& message) {
  return std::visit(Overloaded{[](const Hello&) { return MessageType::kHello; },
                               [](const Welcome&) { return MessageType::kWelcome; },
                               [](const Goodbye&) { return MessageType::kGoodbye; },
                               [](const RunDescription&) { return MessageType::kRunDescription; },
                               [](const TrainRequest&) { return MessageType::kTrainRequest; },
                               [](const UpdateOffer&) { return MessageType::kUpdateOffer; },
                               [](const TaskFailed&) { return MessageType::kTaskFailed; },
                               [](const UpdateVerdict&) { return MessageType::kUpdateVerdict; },
                               [](const CancelTask&) { return MessageType::kCancelTask; },
                               [](const RunEnded&) { return MessageType::kRunEnded; },
                               [](const RunAnswer&) { return MessageType::kRunAnswer; },
                               [](const PublishRecord&) { return MessageType::kPublishRecord; },
                               [](const SwarmMembers&) { return MessageType::kSwarmMembers; },
                               [](const ServerlessUpdate&) { return MessageType::kServerlessUpdate; },
                               [](const UpdateHeld&) { return MessageType::kUpdateHeld; },
                               [](const AggregateUpdates&) { return MessageType::kAggregateUpdates; },
                               [](const AggregateMade&) { return MessageType::kAggregateMade; },
                               [](const ChunksHeld&) { return MessageType::kChunksHeld; },
                               [](const ChunksAdded&) { return MessageType::kChunksAdded; },
                               [](const SwarmState&) { return MessageType::kSwarmState; },
                               [](const ChunkCancelled&) { return MessageType::kChunkCancelled; },
                               [](const WarmupPlan&) { return MessageType::kWarmupPlan; },
                               [](const WarmupSlot&) { return MessageType::kWarmupSlot; },
                               [](const WarmupOver&) { return MessageType::kWarmupOver; },
                               [](const SealedChunk&) { return MessageType::kSealedChunk; },
                               [](const SecureKeys&) { return MessageType::kSecureKeys; },
                               [](const SecureRoster&) { return MessageType::kSecureRoster; },
                               [](const SecureShares&) { return MessageType::kSecureShares; },
                               [](const SecurePeerShares&) { return MessageType::kSecurePeerShares; },
                               [](const SecureSurvivors&) { return MessageType::kSecureSurvivors; },
                               [](const SecureConsent&) { return MessageType::kSecureConsent; },
                               [](const SecureConsents&) { return MessageType::kSecureConsents; },
                               [](const SecureUnmask&) { return MessageType::kSecureUnmask; }},
                    message);
}

const char* name_of(const Message& message) { return name_of(type_of(message)); }

std::string encode(const Message& message) {
  return std::visit([](const auto& value) { return serialise(message_to_wire(value)); }, message);
}

std::string encode_frame(const Message& message) { return frame_around(type_of(message), encode(message)); }

std::string encode_empty_frame(MessageType type) { return frame_around(type, ""); }

std::size_t frame_size(const Message& message) {
  return kFrameHeaderSize +
         std::visit([](const auto& value) { return message_to_wire(value).ByteSizeLong(); }, message);
}

Result<Message> decode(MessageType type, std::span<const std::byte> header) {
  switch (type) {
    case MessageType::kHello:
      return parse<v1::Hello>(type, header);
    case MessageType::kWelcome:
      return parse<v1::Welcome>(type, header);
    case MessageType::kGoodbye:
      return parse<v1::Goodbye>(type, header);
    case MessageType::kRunDescription:
      return parse<v1::RunDescription>(type, header);
    case MessageType::kTrainRequest:
      return parse<v1::TrainRequest>(type, header);
    case MessageType::kUpdateOffer:
      return parse<v1::UpdateOffer>(type, header);
    case MessageType::kTaskFailed:
      return parse<v1::TaskFailed>(type, header);
    case MessageType::kUpdateVerdict:
      return parse<v1::UpdateVerdict>(type, header);
    case MessageType::kCancelTask:
      return parse<v1::CancelTask>(type, header);
    case MessageType::kRunEnded:
      return parse<v1::RunEnded>(type, header);
    case MessageType::kRunAnswer:
      return parse<v1::RunAnswer>(type, header);
    case MessageType::kPublishRecord:
      return parse<v1::PublishRecord>(type, header);
    case MessageType::kSwarmMembers:
      return parse<v1::SwarmMembers>(type, header);
    case MessageType::kServerlessUpdate:
      return parse<v1::ServerlessUpdate>(type, header);
    case MessageType::kUpdateHeld:
      return parse<v1::UpdateHeld>(type, header);
    case MessageType::kAggregateUpdates:
      return parse<v1::AggregateUpdates>(type, header);
    case MessageType::kAggregateMade:
      return parse<v1::AggregateMade>(type, header);
    case MessageType::kChunksHeld:
      return parse<v1::ChunksHeld>(type, header);
    case MessageType::kChunksAdded:
      return parse<v1::ChunksAdded>(type, header);
    case MessageType::kSwarmState:
      return parse<v1::SwarmState>(type, header);
    case MessageType::kChunkCancelled:
      return parse<v1::ChunkCancelled>(type, header);
    case MessageType::kWarmupPlan:
      return parse<v1::WarmupPlan>(type, header);
    case MessageType::kWarmupSlot:
      return parse<v1::WarmupSlot>(type, header);
    case MessageType::kWarmupOver:
      return parse<v1::WarmupOver>(type, header);
    case MessageType::kSealedChunk:
      return parse<v1::SealedChunk>(type, header);
    case MessageType::kSecureKeys:
      return parse<v1::SecureKeys>(type, header);
    case MessageType::kSecureRoster:
      return parse<v1::SecureRoster>(type, header);
    case MessageType::kSecureShares:
      return parse<v1::SecureShares>(type, header);
    case MessageType::kSecurePeerShares:
      return parse<v1::SecurePeerShares>(type, header);
    case MessageType::kSecureSurvivors:
      return parse<v1::SecureSurvivors>(type, header);
    case MessageType::kSecureConsent:
      return parse<v1::SecureConsent>(type, header);
    case MessageType::kSecureConsents:
      return parse<v1::SecureConsents>(type, header);
    case MessageType::kSecureUnmask:
      return parse<v1::SecureUnmask>(type, header);
    default:
      return Error{ErrorCode::kUnsupported, "message type " + std::to_string(static_cast<unsigned>(type)) +
                                                " is not a control message of this version"};
  }
}

}  // namespace fedge::protocol
