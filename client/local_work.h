// LocalWork: what a client does between the model's arrival and its offer, the same in the daemon and in the
// simulator: train, take the norm, encode, and work out what to remember. Computation only: no socket,
// no file, no thread. One object for each thread; used for any client of the task.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "client/client_memory.h"
#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/result.h"
#include "core/time.h"
#include "learn/task.h"
#include "privacy/differential/local_privacy.h"
#include "privacy/secure_aggregation/client.h"
#include "privacy/secure_aggregation/masking_spec.h"
#include "protocol/codecs/compression_spec.h"
#include "protocol/messages.h"
#include "protocol/status_spec.h"
#include "run/privacy/private_sum.h"

namespace fedge::client {

// What the coordinator's run description asks of a client: [data], [model], [training], [compression],
// [status].
struct WorkSpec {
  learn::TaskSpec task;
  protocol::CompressionSpec compression;
  protocol::StatusSpec status;
  std::optional<privacy::MaskingSpec> masking = {};  // in a run whose updates are summed in secret
  std::optional<privacy::LocalPrivacySpec> local_privacy =
      {};  // in one whose clients trust nobody with theirs
};
// Errors are left in `root`.
WorkSpec read_work(config::Reader& root);

struct WorkOrder {
  ClientId client;
  RoundNumber round;
  double data_share = 1;           // of its samples, in (0, 1]
  Coverage coverage;               // to be trained and sent
  std::span<const float> control;  // SCAFFOLD: the server's control variate, model size; else empty
  std::uint64_t max_steps = 0;     // end training after so many steps: partial work; 0: never
  bool flip_labels = false;        // a simulation's poisoned client
  std::stop_token stop;            // give up: the result is of no use
  std::stop_token finish;          // end training after the step in hand: partial work
  TrackId track;                   // whose model it is
  Duration time_left{};            // until the update is no longer waited for, when the task came
  // In a run whose clients add noise: where that comes from.
  std::optional<fedge::run::PrivateSum::Noise> noise = {};
};

// Local training somewhere else than in learn/: writes update = trained - model, packed over the order's
// coverage.
using TrainElsewhere = std::function<Result<learn::TrainingResult>(
    const WorkOrder& order, std::span<const float> model, std::span<float> update)>;

// When a client that may send partial work ends its training of a task that came at `asked`; nothing if it
// trains to the end.
std::optional<Time> training_ends(const learn::TrainingSpec& spec, Time asked, Duration time_left);

// The result of a task's training. It stays with the client: what leaves is an OutgoingUpdate.
struct WorkResult {
  learn::TrainingResult training;
  double norm = 0;                            // Euclidean, of the update before it was encoded
  AlignedBuffer<float> values;                // packed over the coverage, as the receiver will see them
  protocol::EncodedPayload encoded;           // no bytes if the values are sent as they are
  std::optional<std::uint64_t> release = {};  // once the client has noised it: what it is known by
  std::optional<Error> fault = {};            // why its values are zeros that count for nothing

  std::span<const std::byte> payload() const {
    return encoded.bytes.empty() ? std::as_bytes(values.span()) : std::span<const std::byte>(encoded.bytes);
  }
  // The payload's manifest, without the hashes of its chunks.
  protocol::Manifest shape(const Digest& layout, const Coverage& coverage, std::uint32_t chunk_size) const;
};

// An update that may leave the client. In a run whose updates are masked none can be made of a WorkResult but
// by LocalWork::mask(), so that nothing else can be kept for sending, offered or served.
class OutgoingUpdate {
 public:
  // kRefused if the run masks its updates.
  static Result<OutgoingUpdate> in_the_clear(WorkResult result,
                                             const std::optional<privacy::MaskingSpec>& masking);

  std::span<const std::byte> payload() const { return result_.payload(); }
  // As the receiver will see them; of a masked one nothing.
  std::span<const float> values() const { return result_.values.span(); }
  // What the coordinator is told of it, with the hashes of its chunks.
  protocol::UpdateOffer offer(const protocol::TrainRequest& task) const;
  std::optional<std::uint64_t> release() const { return result_.release; }
  // Why nothing of the client is in it; for the client's own log.
  const std::optional<Error>& fault() const { return result_.fault; }

 private:
  friend class LocalWork;
  explicit OutgoingUpdate(WorkResult result) : result_(std::move(result)) {}

  WorkResult result_;
  // Set once the update is masked: then result_ has no values any more, and no figures of the training.
  std::optional<Coverage> coverage_;
  std::vector<std::uint64_t> scalars_;
};

class LocalWork {
 public:
  // `task` must outlive it.
  LocalWork(const learn::Task& task, const protocol::CompressionSpec& compression, std::uint64_t seed)
      : task_(task), compression_(compression), rng_(seed), trainer_(task.make_trainer()) {}
  // Of such a task only the model and the settings are used; its objective is not scaffold.
  LocalWork(const learn::Task& task, const protocol::CompressionSpec& compression, std::uint64_t seed,
            TrainElsewhere elsewhere)
      : task_(task), compression_(compression), rng_(seed), elsewhere_(std::move(elsewhere)) {}

  // From now on updates are noised, and nothing else is told of the training, as by hide_failures().
  void make_private(const privacy::LocalPrivacySpec& spec) {
    privacy_ = spec;
    hides_failures_ = true;
  }
  // From now on training that diverges gives zeros without samples, and the result's fault: that it failed
  // would tell of the data.
  void hide_failures() { hides_failures_ = true; }
  // Whether a task goes on from what an earlier one left.
  bool remembers() const { return compression_.error_feedback || scaffold(); }

  // `model` is the whole model; `memory` is what the client's last accepted task left, and becomes what
  // this one leaves. `values` is memory to be used for the result, of the coverage's size or empty.
  // kInvalid if the training diverged and that may be told.
  Result<WorkResult> run(const WorkOrder& order, std::span<const float> model, ClientMemory& memory,
                         AlignedBuffer<float> values = {});
  // Uses the order's client, round, track, coverage and noise. What is not finite is masked as zeros
  // (run::mask_update).
  Result<OutgoingUpdate> mask(const WorkOrder& order, const privacy::MaskingSpec& spec,
                              const privacy::Masking& masking, WorkResult result) const;

 private:
  bool scaffold() const { return task_.spec().training.objective.kind == learn::ObjectiveKind::kScaffold; }
  Result<learn::TrainingResult> train(const WorkOrder& order, std::span<const float> model,
                                      const ClientMemory& memory, std::span<float> update);
  bool hides(const Result<learn::TrainingResult>& training, const Error& fault) const;
  Result<void> add_noise(const WorkOrder& order, WorkResult& result) const;
  void encode(const WorkOrder& order, ClientMemory& memory, WorkResult& result) const;
  void remember_control(const WorkOrder& order, ClientMemory& memory, const WorkResult& result) const;

  const learn::Task& task_;
  protocol::CompressionSpec compression_;
  std::optional<privacy::LocalPrivacySpec> privacy_;
  bool hides_failures_ = false;
  Rng rng_;
  std::optional<learn::Trainer> trainer_;  // or
  TrainElsewhere elsewhere_;
  std::vector<float> correction_;  // c - c_k, with SCAFFOLD
};

}  // namespace fedge::client
