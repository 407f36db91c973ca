// The messages about a client's tasks. Part of messages.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/coverage.h"
#include "core/energy/power.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// The task: train from this model and offer the update.
struct TrainRequest {
  RunId run;
  RoundNumber round;                // names the task, together with `track`
  Manifest model;                   // the model to fetch; plain float32
  Coverage coverage;                // which parameters to train and send
  Duration time_left{};             // until the coordinator stops waiting for the update, on its clock
  RoundNumber last_round;           // the client's last task whose update was accepted, 0 for none
  std::optional<Manifest> control;  // SCAFFOLD: the server's control variate, to fetch as well
  TrackId track;                    // the model's track; the client keeps a separate memory for each
  double data_share = 1;            // fraction of its samples to train on, in (0, 1]
  // The run's live tracks, ascending, at most kMaxLiveTracks; the client may forget others. Empty:
  // unspecified.
  std::vector<TrackId> live_tracks = {};
  // The task was assigned before, perhaps with another model: a client that has the task continues it.
  bool again = false;
  // Exchange the model's chunks with the members of its swarm, instead of fetching them from the sender
  // only.
  bool swarm = false;
  // The update of an evaluation or of statistics is zeros.
  TaskKind kind = TaskKind::kTraining;
  // Mask the update, in this attempt (from 1) at the round's secure sum (SecureSession); 0: unmasked.
  std::uint32_t secure_attempt = 0;
  // In a run that normalises by the clients' statistics, at most kMaxTaskSums. A task of statistics: the
  // edges of each column's bins, one column after the other. Any other: the mean of each column, then the
  // deviation of each, which is above 0.
  std::vector<float> statistics = {};
  // What the client may train for the next round while its update is under way (training.overlap); empty:
  // nothing.
  Coverage next = {};
  Effort effort = {};  // what the task asks of the device besides

  TaskId task() const { return {round, track, kind}; }
  bool operator==(const TrainRequest&) const = default;
};

// Offers a finished update; the coordinator may fetch it.
struct UpdateOffer {
  RunId run;
  RoundNumber round;
  Manifest update;      // delta over its coverage, in any codec
  SampleCount samples;  // weight
  std::uint64_t steps = 0;
  double train_loss = 0;  // finite
  double norm = 0;        // Euclidean, before encoding; finite, not negative
  double loss_rms = 0;    // root mean square of the samples' loss; finite, not negative
  TrackId track;
  TaskKind kind = TaskKind::kTraining;
  double wanted_share = 0;            // largest fraction of adapter ranks wanted next, in (0, 1]; 0: no wish
  double activation_correlation = 0;  // split training: learn/split/distance_correlation.h; 0: not measured
  // Sample count and metrics of a masked update, masked modulo 2^64 (docs/PROTOCOL.md); `samples` is then 1
  // and the metrics are 0. At most kMaxSecureScalars.
  std::vector<std::uint64_t> masked_scalars = {};
  // Evaluations and statistics: their sums, if they are not masked; at most kMaxTaskSums.
  std::vector<std::int64_t> sums = {};
  // Energy that the client measured while it trained, from 0 to kMaxJoules; empty: unknown.
  std::optional<double> joules = {};
  TaskId task() const { return {round, track, kind}; }
  bool operator==(const UpdateOffer&) const = default;
};

// The client cannot deliver an update for this task.
struct TaskFailed {
  RunId run;
  RoundNumber round;
  ErrorCode code = ErrorCode::kInvalid;
  std::string reason;
  TrackId track;
  TaskKind kind = TaskKind::kTraining;

  TaskId task() const { return {round, track, kind}; }
  bool operator==(const TaskFailed&) const = default;
};

// The verdict on an offered update; accepted means that it is in the round's aggregate.
struct UpdateVerdict {
  RunId run;
  RoundNumber round;
  bool accepted = false;
  ErrorCode code = ErrorCode::kInvalid;  // only if refused
  std::string reason;                    // only if refused
  TrackId track;
  TaskKind kind = TaskKind::kTraining;

  TaskId task() const { return {round, track, kind}; }
  bool operator==(const UpdateVerdict&) const = default;
};

// Stop working on this task.
struct CancelTask {
  RunId run;
  RoundNumber round;
  std::string reason;
  TrackId track;
  TaskKind kind = TaskKind::kTraining;

  TaskId task() const { return {round, track, kind}; }
  bool operator==(const CancelTask&) const = default;
};

}  // namespace fedge::protocol
