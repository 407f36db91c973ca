#include "protocol/detail/task_messages.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <span>

#include "core/text.h"
#include "protocol/detail/field_reader.h"
#include "protocol/detail/wire_values.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

bool is_size(double value) { return std::isfinite(value) && value >= 0; }

template <class Wire>
TaskKind kind_in(const Wire& wire, FieldReader& reader) {
  reader.require(v1::TaskKind_IsValid(wire.kind()), "kind is unknown");
  return static_cast<TaskKind>(wire.kind());
}

void check_statistics(const TrainRequest& message, FieldReader& reader) {
  const std::span<const float> all = message.statistics;
  reader.require(std::ranges::all_of(all, [](float value) { return std::isfinite(value); }),
                 "a number of statistics is not finite");
  if (message.kind == TaskKind::kStatistics) return reader.require(!all.empty(), "statistics has no edges");
  reader.require(all.size() % 2 == 0, "statistics does not have a deviation for each mean");
  reader.require(std::ranges::all_of(all.subspan(all.size() / 2), [](float value) { return value > 0; }),
                 "a deviation of statistics is not above 0");
}

}  // namespace

v1::TrainRequest message_to_wire(const TrainRequest& message) {
  auto wire = begun<v1::TrainRequest>(message.run, message.task());
  *wire.mutable_model() = to_wire(message.model);
  wire.set_coverage(to_wire(message.coverage));
  const Duration left = std::clamp<Duration>(message.time_left, Duration::zero(), kMaxTimeLeft);
  wire.set_time_left_ns(static_cast<std::uint64_t>(left.count()));
  wire.set_last_round(message.last_round.value());
  if (message.control) *wire.mutable_control() = to_wire(*message.control);
  if (message.data_share < 1) wire.set_data_share(message.data_share);
  for (const TrackId track : message.live_tracks) wire.add_live_tracks(track.value());
  wire.set_again(message.again);
  wire.set_swarm(message.swarm);
  wire.set_secure_attempt(message.secure_attempt);
  wire.set_kind(static_cast<v1::TaskKind>(message.kind));
  wire.mutable_statistics()->Add(message.statistics.begin(), message.statistics.end());
  if (!message.next.empty()) wire.set_next(to_wire(message.next));
  wire.set_hertz(message.effort.hertz);
  wire.set_kept(message.effort.kept);
  return wire;
}

v1::UpdateOffer message_to_wire(const UpdateOffer& message) {
  auto wire = begun<v1::UpdateOffer>(message.run, message.task());
  *wire.mutable_update() = to_wire(message.update);
  wire.set_samples(message.samples.value());
  wire.set_steps(message.steps);
  wire.set_train_loss(message.train_loss);
  wire.set_norm(message.norm);
  wire.set_loss_rms(message.loss_rms);
  wire.set_wanted_share(message.wanted_share);
  wire.set_activation_correlation(message.activation_correlation);
  for (const std::uint64_t scalar : message.masked_scalars) wire.add_masked_scalars(scalar);
  wire.set_kind(static_cast<v1::TaskKind>(message.kind));
  for (const std::int64_t sum : message.sums) wire.add_sums(sum);
  if (message.joules) wire.set_joules(*message.joules);
  return wire;
}

v1::TaskFailed message_to_wire(const TaskFailed& message) {
  auto wire = begun<v1::TaskFailed>(message.run, message.task());
  wire.set_kind(static_cast<v1::TaskKind>(message.kind));
  wire.set_code(to_wire(message.code));
  wire.set_reason(clean_text(message.reason, kMaxText));
  return wire;
}

v1::UpdateVerdict message_to_wire(const UpdateVerdict& message) {
  auto wire = begun<v1::UpdateVerdict>(message.run, message.task());
  wire.set_kind(static_cast<v1::TaskKind>(message.kind));
  wire.set_accepted(message.accepted);
  if (message.accepted) return wire;
  wire.set_code(to_wire(message.code));
  wire.set_reason(clean_text(message.reason, kMaxText));
  return wire;
}

v1::CancelTask message_to_wire(const CancelTask& message) {
  auto wire = begun<v1::CancelTask>(message.run, message.task());
  wire.set_kind(static_cast<v1::TaskKind>(message.kind));
  wire.set_reason(clean_text(message.reason, kMaxText));
  return wire;
}

Result<Message> message_from_wire(const v1::TrainRequest& wire) {
  constexpr auto kMax = std::chrono::duration_cast<Duration>(kMaxTimeLeft);
  FieldReader reader;
  reader.require(wire.time_left_ns() <= static_cast<std::uint64_t>(kMax.count()),
                 "time_left_ns is above 366 days");
  TrainRequest message{.run = RunId(wire.run()),
                       .round = RoundNumber(wire.round()),
                       .model = reader.take(from_wire(wire.model()), "model"),
                       .coverage = reader.take(coverage_from_wire(wire.coverage()), "coverage"),
                       .time_left = Duration(static_cast<Duration::rep>(wire.time_left_ns())),
                       .last_round = RoundNumber(wire.last_round()),
                       .control = {},
                       .track = TrackId(wire.track()),
                       .data_share = wire.data_share() > 0 ? wire.data_share() : 1.0};
  reader.require(wire.data_share() >= 0 && wire.data_share() <= 1, "data_share is not between 0 and 1");
  const auto& live = wire.live_tracks();
  reader.require(std::ranges::adjacent_find(live, std::ranges::greater_equal()) == live.end(),
                 "live_tracks are not in ascending order");
  for (const std::uint32_t track : live) message.live_tracks.emplace_back(track);
  message.again = wire.again();
  message.swarm = wire.swarm();
  message.secure_attempt = wire.secure_attempt();
  message.kind = kind_in(wire, reader);
  message.statistics.assign(wire.statistics().begin(), wire.statistics().end());
  check_statistics(message, reader);
  if (!wire.next().empty()) message.next = reader.take(coverage_from_wire(wire.next()), "next");
  message.effort = {.hertz = wire.hertz(), .kept = wire.kept()};
  reader.require(is_size(wire.hertz()), "hertz is not a finite number of at least 0");
  reader.require(wire.kept() >= 0 && wire.kept() <= 1, "kept is not between 0 and 1");
  if (wire.has_control()) message.control = reader.take(from_wire(wire.control()), "control");
  reader.require(
      message.model.is_plain_float32() && (!message.control || message.control->is_plain_float32()),
      "model: a model must be sent as plain float32");
  reader.require(message.model.coverage.contains(message.coverage), "coverage reaches beyond the model's");
  reader.require(message.model.coverage.contains(message.next), "next reaches beyond the model's");
  return reader.finish(std::move(message));
}

Result<Message> message_from_wire(const v1::UpdateOffer& wire) {
  FieldReader reader;
  reader.require(wire.samples() >= 1 && wire.samples() <= kMaxSamples, "samples is not between 1 and 2^40");
  reader.require(std::isfinite(wire.train_loss()), "train_loss is not finite");
  reader.require(is_size(wire.norm()), "norm is not a finite number of at least 0");
  reader.require(is_size(wire.loss_rms()), "loss_rms is not a finite number of at least 0");
  reader.require(is_size(wire.wanted_share()) && wire.wanted_share() <= 1,
                 "wanted_share is not between 0 and 1");
  reader.require(is_size(wire.activation_correlation()) && wire.activation_correlation() <= 1,
                 "activation_correlation is not between 0 and 1");
  reader.require(!wire.has_joules() || (is_size(wire.joules()) && wire.joules() <= kMaxJoules),
                 "joules is not between 0 and 10^12");
  if (reader.failed()) return reader.finish(UpdateOffer{});
  return reader.finish(
      UpdateOffer{.run = RunId(wire.run()),
                  .round = RoundNumber(wire.round()),
                  .update = reader.take(from_wire(wire.update()), "update"),
                  .samples = SampleCount(wire.samples()),
                  .steps = wire.steps(),
                  .train_loss = wire.train_loss(),
                  .norm = wire.norm(),
                  .loss_rms = wire.loss_rms(),
                  .track = TrackId(wire.track()),
                  .kind = kind_in(wire, reader),
                  .wanted_share = wire.wanted_share(),
                  .activation_correlation = wire.activation_correlation(),
                  .masked_scalars = {wire.masked_scalars().begin(), wire.masked_scalars().end()},
                  .sums = {wire.sums().begin(), wire.sums().end()},
                  .joules = wire.has_joules() ? std::optional(wire.joules()) : std::nullopt});
}

Result<Message> message_from_wire(const v1::TaskFailed& wire) {
  FieldReader reader;
  return reader.finish(TaskFailed{RunId(wire.run()), RoundNumber(wire.round()), from_wire(wire.code()),
                                  reader.text(wire.reason(), "reason"), TrackId(wire.track()),
                                  kind_in(wire, reader)});
}

Result<Message> message_from_wire(const v1::UpdateVerdict& wire) {
  FieldReader reader;
  return reader.finish(UpdateVerdict{RunId(wire.run()), RoundNumber(wire.round()), wire.accepted(),
                                     from_wire(wire.code()), reader.text(wire.reason(), "reason"),
                                     TrackId(wire.track()), kind_in(wire, reader)});
}

Result<Message> message_from_wire(const v1::CancelTask& wire) {
  FieldReader reader;
  return reader.finish(CancelTask{RunId(wire.run()), RoundNumber(wire.round()),
                                  reader.text(wire.reason(), "reason"), TrackId(wire.track()),
                                  kind_in(wire, reader)});
}

}  // namespace fedge::protocol
