#include "protocol/codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "core/text.h"
#include "proto/fedge.pb.h"
#include "protocol/detail/field_counts.h"
#include "protocol/detail/field_reader.h"
#include "protocol/detail/secure_messages.h"
#include "protocol/detail/serverless_messages.h"
#include "protocol/detail/split_messages.h"
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
  wire.set_platform(clean_text(message.platform, kMaxPlatformText));
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

v1::Contact message_to_wire(const Contact& message) {
  v1::Contact wire;
  for (const std::string& address : message.addresses) wire.add_addresses(address);
  if (message.next_key) wire.set_next_key(to_wire(*message.next_key));
  return wire;
}

v1::ContactKept message_to_wire(const ContactKept& message) {
  v1::ContactKept wire;
  wire.set_next_key(to_wire(message.next_key));
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

v1::DevicePower power_to_wire(const DevicePower& power) {
  v1::DevicePower wire;
  wire.set_watts_lowest(power.watts_lowest);
  wire.set_watts_highest(power.watts_highest);
  wire.set_cycles_per_flop(power.cycles_per_flop);
  wire.set_awake_watts(power.awake_watts);
  wire.set_send_watts(power.send_watts);
  wire.set_receive_watts(power.receive_watts);
  wire.set_send_bytes_per_second(power.send_bytes_per_second);
  wire.set_receive_bytes_per_second(power.receive_bytes_per_second);
  return wire;
}

Result<DevicePower> power_from_wire(const v1::RunAnswer& answer) {
  const v1::DevicePower& wire = answer.power();
  DevicePower power{.hertz = {answer.hertz().begin(), answer.hertz().end()},
                    .volts = {answer.volts().begin(), answer.volts().end()},
                    .watts_lowest = wire.watts_lowest(),
                    .watts_highest = wire.watts_highest(),
                    .cycles_per_flop = wire.cycles_per_flop(),
                    .awake_watts = wire.awake_watts(),
                    .send_watts = wire.send_watts(),
                    .receive_watts = wire.receive_watts(),
                    .send_bytes_per_second = wire.send_bytes_per_second(),
                    .receive_bytes_per_second = wire.receive_bytes_per_second()};
  FEDGE_TRY_VOID(check_power(power));
  return power;
}

v1::RunAnswer message_to_wire(const RunAnswer& message) {
  v1::RunAnswer wire;
  wire.set_run(message.run.value());
  wire.set_ready(message.ready);
  if (message.ready) {
    wire.set_samples(message.samples.value());
    wire.set_capability(message.capability);
    wire.set_evaluation_samples(message.evaluation_samples.value());
    if (!message.power) return wire;
    *wire.mutable_power() = power_to_wire(*message.power);
    wire.mutable_hertz()->Add(message.power->hertz.begin(), message.power->hertz.end());
    wire.mutable_volts()->Add(message.power->volts.begin(), message.power->volts.end());
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

v1::TokenizerRequest message_to_wire(const TokenizerRequest& message) {
  v1::TokenizerRequest wire;
  wire.set_run(message.run.value());
  wire.set_offset(message.offset);
  return wire;
}

v1::TokenizerPart message_to_wire(const TokenizerPart& message) {
  v1::TokenizerPart wire;
  wire.set_run(message.run.value());
  wire.set_total(message.total);
  wire.set_offset(message.offset);
  wire.set_bytes(message.bytes);
  return wire;
}

v1::RunEnded message_to_wire(const RunEnded& message) {
  v1::RunEnded wire;
  wire.set_run(message.run.value());
  wire.set_reason(clean_text(message.reason, kMaxText));
  return wire;
}

// ---- protobuf to values ----

Result<Message> message_from_wire(const v1::Hello& wire) {
  FieldReader reader;
  if (!wire.listens().empty()) reader.take(parse_listens(wire.listens()), "listens");
  reader.require(wire.min_version() >= 1 && wire.min_version() <= wire.max_version(),
                 "min_version and max_version are not a valid range of versions");
  return reader.finish(Hello{wire.min_version(), wire.max_version(), reader.features(wire.features()),
                             reader.text(wire.software(), "software", kMaxSoftwareText),
                             reader.text(wire.token(), "token"),
                             reader.text(wire.listens(), "listens", kMaxAddressText),
                             reader.text(wire.platform(), "platform", kMaxPlatformText)});
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

Result<Message> message_from_wire(const v1::Contact& wire) {
  FieldReader reader;
  Contact message;
  for (const std::string& address : wire.addresses()) {
    const auto parsed = reader.take(parse_address(address), "addresses");
    reader.require(parsed.port != 0, "addresses contain port 0");
    message.addresses.push_back(reader.text(address, "addresses", kMaxAddressText));
  }
  if (!wire.next_key().empty()) message.next_key = reader.take(key_from_wire(wire.next_key()), "next_key");
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::ContactKept& wire) {
  FieldReader reader;
  return reader.finish(ContactKept{reader.take(key_from_wire(wire.next_key()), "next_key")});
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
  reader.require(!wire.ready() || (std::max<std::uint64_t>(wire.samples(), wire.evaluation_samples()) >= 1),
                 "samples and evaluation_samples are both 0");
  reader.require(wire.samples() <= kMaxSamples && wire.evaluation_samples() <= kMaxSamples,
                 "samples or evaluation_samples is above 2^40");
  reader.require(wire.capability() >= 0 && wire.capability() <= 1, "capability is not between 0 and 1");
  std::optional<DevicePower> power;
  if (wire.has_power()) power = reader.take(power_from_wire(wire), "power");
  return reader.finish(RunAnswer{RunId(wire.run()), wire.ready(), SampleCount(wire.samples()),
                                 from_wire(wire.code()), reader.text(wire.reason(), "reason"),
                                 wire.capability() > 0 ? wire.capability() : 1.0,
                                 SampleCount(wire.evaluation_samples()), std::move(power)});
}

Result<Message> message_from_wire(const v1::PublishRecord& wire) {
  FieldReader reader;
  reader.require(!wire.value().empty() && wire.value().size() <= kMaxRecordBytes,
                 "value is not 1 to 4096 bytes long");
  const auto b = std::as_bytes(std::span(wire.value()));
  return reader.finish(
      PublishRecord{RunId(wire.run()), RoundNumber(wire.round()), wire.sequence(), {b.begin(), b.end()}});
}

Result<Message> message_from_wire(const v1::TokenizerRequest& wire) {
  FieldReader reader;
  reader.require(wire.offset() < kMaxTokenizer, "offset is not below 33554432");
  return reader.finish(TokenizerRequest{RunId(wire.run()), wire.offset()});
}

Result<Message> message_from_wire(const v1::TokenizerPart& wire) {
  FieldReader reader;
  reader.require(wire.total() >= 1 && wire.total() <= kMaxTokenizer, "total is not between 1 and 33554432");
  reader.require(wire.offset() < wire.total(), "offset is not below total");
  const std::size_t left = wire.total() - std::min(wire.offset(), wire.total());
  reader.require(wire.bytes().size() == std::min<std::size_t>(left, kMaxTokenizerPart),
                 "bytes are not those of a whole part");
  return reader.finish(TokenizerPart{RunId(wire.run()), wire.total(), wire.offset(), wire.bytes()});
}

Result<Message> message_from_wire(const v1::RunEnded& wire) {
  FieldReader reader;
  return reader.finish(RunEnded{RunId(wire.run()), reader.text(wire.reason(), "reason")});
}

// Also use those of detail/.
using protocol::message_from_wire;
using protocol::message_to_wire;

// The generated class of T.
template <class T>
using WireOf = decltype(message_to_wire(std::declval<const T&>()));

template <class T>
Result<Message> parse(const char* name, std::span<const std::byte> header) {
  const std::string prefix = std::string(name) + ": ";
  WireOf<T> wire;
  if (const auto parsed = parse_wire(wire, header, kFieldCounts<WireOf<T>>); !parsed)
    return parsed.error().with_prefix(prefix);
  auto message = message_from_wire(wire);
  if (!message) return message.error().with_prefix(prefix);
  return message;
}

template <class... T>
Result<Message> parse_one_of(const MessageTable<T...>& table, MessageType type,
                             std::span<const std::byte> header) {
  constexpr std::array kParsers{&parse<T>...};
  const auto rows = table.rows();
  const auto row = std::ranges::find(rows, type, &FrameType::type);
  if (row == rows.end())
    return Error{ErrorCode::kUnsupported, "message type " + std::to_string(static_cast<unsigned>(type)) +
                                              " is not a control message of this version"};
  return kParsers.at(static_cast<std::size_t>(row - rows.begin()))(row->name, header);
}

}  // namespace

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
  return parse_one_of(kMessages, type, header);
}

}  // namespace fedge::protocol
