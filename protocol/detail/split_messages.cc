#include "protocol/detail/split_messages.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/text.h"
#include "protocol/detail/field_reader.h"
#include "protocol/detail/wire_values.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

template <class Wire, class T>
Wire of_task(const T& message) {
  Wire wire;
  wire.set_run(message.run.value());
  wire.set_round(message.round.value());
  return wire;
}

// Checks that the fields fit each other; whether they fit the task, the receiver checks.
void check(const SplitValues& message, FieldReader& reader) {
  reader.require(message.parts >= 1 && message.parts <= kMaxSplitParts && message.part < message.parts,
                 "part or parts is not within the bounds");
  const bool whole = message.part + 1 < message.parts;
  reader.require(!message.values.empty() && message.values.size() <= kMaxSplitPart &&
                     (!whole || message.values.size() == kMaxSplitPart),
                 "values have another size than their part");
  const bool from_client =
      message.kind == SplitKind::kActivations || message.kind == SplitKind::kOutputGradients;
  const bool described = message.steps > 0 || message.total > 0 || message.last || !message.sent.empty() ||
                         !message.targets.empty() || !message.samples.empty();
  reader.require(from_client && message.part == 0 ? !message.sent.empty() : !described,
                 "sent, targets, steps, total, last and samples belong to part 0 of a client's values");
  reader.require(message.losses.empty() || (message.kind == SplitKind::kGradients && message.part == 0),
                 "losses belong to part 0 of gradients");
  const std::uint64_t tokens = std::accumulate(message.sent.begin(), message.sent.end(), std::uint64_t{0});
  reader.require(tokens <= kMaxSplitTokens, "sent has more than 65536 tokens");
  reader.require(message.targets.empty() || message.targets.size() == tokens,
                 "targets are not one for each token");
  reader.require(message.samples.empty() || message.samples.size() == message.sent.size(),
                 "samples are not one for each sequence");
  for (const double loss : message.losses)
    reader.require(std::isfinite(loss) && loss >= 0, "losses: a loss is not finite, or negative");
}

}  // namespace

v1::SplitValues message_to_wire(const SplitValues& message) {
  auto wire = of_task<v1::SplitValues>(message);
  wire.set_kind(static_cast<v1::SplitKind>(message.kind));
  wire.set_step(message.step);
  wire.set_first(message.first);
  wire.set_part(message.part);
  wire.set_parts(message.parts);
  wire.set_values(message.values.data(), message.values.size());
  wire.set_steps(message.steps);
  wire.set_total(message.total);
  wire.set_last(message.last);
  wire.mutable_sent()->Assign(message.sent.begin(), message.sent.end());
  wire.mutable_targets()->Assign(message.targets.begin(), message.targets.end());
  wire.mutable_samples()->Assign(message.samples.begin(), message.samples.end());
  wire.mutable_losses()->Assign(message.losses.begin(), message.losses.end());
  return wire;
}

v1::SplitTaken message_to_wire(const SplitTaken& message) {
  auto wire = of_task<v1::SplitTaken>(message);
  wire.set_part(message.part);
  return wire;
}

v1::SplitEnded message_to_wire(const SplitEnded& message) {
  auto wire = of_task<v1::SplitEnded>(message);
  wire.set_steps(message.steps);
  return wire;
}

v1::SplitKept message_to_wire(const SplitKept& message) { return of_task<v1::SplitKept>(message); }

v1::SplitRefused message_to_wire(const SplitRefused& message) {
  auto wire = of_task<v1::SplitRefused>(message);
  wire.set_code(to_wire(message.code));
  wire.set_reason(clean_text(message.reason, kMaxText));
  return wire;
}

Result<Message> message_from_wire(const v1::SplitValues& wire) {
  FieldReader reader;
  reader.require(v1::SplitKind_IsValid(wire.kind()), "kind is unknown");
  if (reader.failed()) return reader.finish(SplitValues{});
  const auto values = std::as_bytes(std::span(wire.values()));
  SplitValues message{.run = RunId(wire.run()),
                      .round = RoundNumber(wire.round()),
                      .kind = static_cast<SplitKind>(wire.kind()),
                      .step = wire.step(),
                      .first = wire.first(),
                      .part = wire.part(),
                      .parts = wire.parts(),
                      .values = {values.begin(), values.end()},
                      .steps = wire.steps(),
                      .total = wire.total(),
                      .last = wire.last(),
                      .sent = {wire.sent().begin(), wire.sent().end()},
                      .targets = {wire.targets().begin(), wire.targets().end()},
                      .samples = {wire.samples().begin(), wire.samples().end()},
                      .losses = {wire.losses().begin(), wire.losses().end()}};
  check(message, reader);
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::SplitTaken& wire) {
  return Message(SplitTaken{RunId(wire.run()), RoundNumber(wire.round()), wire.part()});
}

Result<Message> message_from_wire(const v1::SplitEnded& wire) {
  FieldReader reader;
  reader.require(wire.steps() >= 1, "steps is 0");
  return reader.finish(SplitEnded{RunId(wire.run()), RoundNumber(wire.round()), wire.steps()});
}

Result<Message> message_from_wire(const v1::SplitKept& wire) {
  return Message(SplitKept{RunId(wire.run()), RoundNumber(wire.round())});
}

Result<Message> message_from_wire(const v1::SplitRefused& wire) {
  FieldReader reader;
  return reader.finish(SplitRefused{RunId(wire.run()), RoundNumber(wire.round()), from_wire(wire.code()),
                                    reader.text(wire.reason(), "reason")});
}

}  // namespace fedge::protocol
