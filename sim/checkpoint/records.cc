#include "sim/checkpoint/records.h"

#include "checkpoint/checkpoint.pb.h"

namespace fedge::sim {

void put(checkpoint::v1::Failure& out, const Error& error) {
  out.set_code(static_cast<std::uint32_t>(error.code));
  out.set_reason(error.message);
}

Error error_of(const checkpoint::v1::Failure& failure) {
  return {static_cast<ErrorCode>(failure.code()), failure.reason()};
}

void put(checkpoint::v1::Record_Training& out, ClientId client, const TrainedUpdate& update) {
  out.set_client(client.value());
  out.set_round(update.task.round.value());
  out.set_track(update.task.track.value());
  out.set_kind(static_cast<std::uint32_t>(update.task.kind));
  if (update.failure) return put(*out.mutable_failure(), *update.failure);
  out.set_samples(update.training.samples.value());
  out.set_steps(update.training.steps);
  out.set_mean_loss(update.training.mean_loss);
  out.set_rms_loss(update.training.rms_loss);
  out.set_norm(update.norm);
  out.set_wanted_share(update.training.wanted_share);
  out.set_activation_correlation(update.training.activation_correlation);
  out.set_codec(static_cast<std::uint32_t>(update.shape.codec));
  out.set_levels(update.shape.levels);
  out.set_payload_size(update.shape.payload_size);
  out.set_raw_size(update.shape.raw_size);
  out.mutable_sums()->Add(update.sums.begin(), update.sums.end());
}

TaskId task_of(const checkpoint::v1::Record_Training& record) {
  return {RoundNumber(record.round()), TrackId(record.track()), static_cast<TaskKind>(record.kind())};
}

TrainedUpdate training_of(const checkpoint::v1::Record_Training& record) {
  TrainedUpdate update;
  update.task = task_of(record);
  if (record.has_failure()) {
    update.failure = error_of(record.failure());
    return update;
  }
  update.training.samples = SampleCount(record.samples());
  update.training.steps = record.steps();
  update.training.mean_loss = record.mean_loss();
  update.training.rms_loss = record.rms_loss();
  update.training.wanted_share = record.wanted_share();
  update.training.activation_correlation = record.activation_correlation();
  update.norm = record.norm();
  update.shape.codec = static_cast<protocol::Codec>(record.codec());
  update.shape.levels = record.levels();
  update.shape.payload_size = record.payload_size();
  update.shape.raw_size = record.raw_size();
  update.sums.assign(record.sums().begin(), record.sums().end());
  return update;
}

}  // namespace fedge::sim
