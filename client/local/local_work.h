// LocalWork: a client's computation between the model's arrival and its offer, the same in the daemon and
// in the simulator. Trains, computes the norm, encodes, and updates the client's memory. No sockets, files
// or threads. Use one object per thread; it may serve any client of the task.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "client/local/client_memory.h"
#include "client/local/outgoing_update.h"
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

// What the run description asks of a client: [data], [model], [training], [compression], [status],
// [evaluation], [statistics], [masking] and [local_privacy].
struct WorkSpec {
  learn::TaskSpec task;
  protocol::CompressionSpec compression;
  protocol::StatusSpec status;
  std::optional<privacy::MaskingSpec> masking = {};             // with secure aggregation
  std::optional<privacy::LocalPrivacySpec> local_privacy = {};  // local differential privacy
  // Statistics are shares of this whole (learn/statistics/shares.h); 0: counts.
  std::int64_t statistics_whole = 0;
  bool evaluates = false;  // clients evaluate models
};
// Errors are collected in `root`.
WorkSpec read_work(config::Reader& root);

struct WorkOrder {
  ClientId client;
  RoundNumber round;
  double data_share = 1;           // fraction of its samples, in (0, 1]
  Coverage coverage;               // parameters to train and send
  std::span<const float> control;  // SCAFFOLD: the server's control variate, model size; else empty
  std::uint64_t max_steps = 0;     // partial work: end training after this many steps; 0: no limit
  bool flip_labels = false;        // simulates a poisoned client
  std::stop_token stop;            // abort: the result will not be used
  std::stop_token finish;          // partial work: end training after the current step
  TrackId track;                   // the model's track
  TaskKind kind = TaskKind::kTraining;
  std::span<const float> edges;  // statistics: of the bins of all columns
  // Normalises the columns of the data; null if the run does not normalise by statistics.
  const learn::Normalisation* normalisation = nullptr;
  const learn::CompactWeights* base = nullptr;  // the matrices that are not trained; null: the model has them
  Duration time_left{};  // from the arrival of the task until the update is no longer waited for
  // The source of the client's noise, in runs whose clients add noise.
  std::optional<fedge::run::PrivateSum::Noise> noise = {};
  double kept = 0;                    // fraction of the update's values to send; 0: as the run file says
  learn::UpperPeer* upper = nullptr;  // split training: the coordinator's half; null: it runs here too
};

// Work outside learn/.
struct Elsewhere {
  // Writes update = trained - model, packed over the order's coverage.
  std::function<Result<learn::TrainingResult>(const WorkOrder& order, std::span<const float> model,
                                              std::span<float> update)>
      train;
  // Evaluates the model on the client's own samples; empty: learn/ does.
  std::function<Result<learn::EvaluationSums>(const WorkOrder& order, std::span<const float> model)>
      evaluate = {};
};

// When a client that may send partial work ends the training of a task that arrived at `asked`; nothing if
// it always trains to the end.
std::optional<Time> training_ends(const learn::TrainingSpec& spec, Time asked, Duration time_left);

class LocalWork {
 public:
  // `task` must outlive it.
  LocalWork(const learn::Task& task, const protocol::CompressionSpec& compression, std::uint64_t seed)
      : task_(task),
        compression_(compression),
        personal_(task.spec().training.personal),
        own_(task.personal()),
        rng_(seed),
        trainer_(task.make_trainer()) {}
  // For work elsewhere: trains only there; the task's objective must remember nothing.
  LocalWork(const learn::Task& task, const protocol::CompressionSpec& compression, std::uint64_t seed,
            Elsewhere elsewhere)
      : task_(task),
        compression_(compression),
        personal_(task.spec().training.personal),
        own_(task.personal()),
        rng_(seed),
        elsewhere_(std::move(elsewhere)) {}

  // Adds noise to all later updates and hides failures and training metrics.
  void make_private(const privacy::LocalPrivacySpec& spec) {
    privacy_ = spec;
    hides_failures_ = true;
  }
  // Statistics are shares of this whole (learn/statistics/shares.h).
  void count_in_shares(std::int64_t whole) { statistics_whole_ = whole; }
  // Replaces the result of later training that diverges or fails because of its data by zeros without
  // samples, and sets its `fault`: a reported failure would reveal something about the data.
  void hide_failures() { hides_failures_ = true; }
  // Whether a task continues from what an earlier one left.
  bool remembers() const {
    return compression_.error_feedback || objective().remembers() || personal_.on() || overlaps();
  }
  // Whether a task begins with values that this client has left, in place of the model's (with_part()).
  bool overlaps() const { return task_.spec().training.overlap != learn::OverlapKind::kNone; }
  // Whether a task of this kind continues from what an earlier one left.
  bool remembers_in(TaskKind kind) const {
    return kind == TaskKind::kTraining ? remembers() : kind == TaskKind::kEvaluation && personal_.on();
  }

  // Whether the coordinator counts on what the client keeps: it must not begin again without it.
  bool corrects() const { return scaffold() || dynamic(); }

  // `model` is the whole model, without what the order's base holds. `memory` is what the client's last
  // accepted task left; the call replaces it by what this task leaves. `values` is an optional buffer for the
  // result, of the coverage's size or empty. kInvalid if training diverged and failures are not hidden.
  // kRefused if the order asks for parameters that stay on the client.
  Result<WorkResult> run(const WorkOrder& order, std::span<const float> model, ClientMemory& memory,
                         AlignedBuffer<float> values = {});
  // What the client can offer before it has trained: samples, steps and size of the update. Losses and norm
  // have no meaning, except that the message is as long as it will be. Nothing if the rest depends on the
  // result.
  std::optional<protocol::UpdateOffer> expected(const WorkOrder& order, const Digest& layout,
                                                std::uint32_t chunk_size) const;
  // Answers a task of evaluation or statistics by sums over the client's own samples; the values are zeros.
  // kInvalid: a model of a kind that a program registers has failed, or the order does not fit the data.
  // Where the client keeps parameters for itself, it evaluates the model with them, and the shared one.
  Result<WorkResult> answer(const WorkOrder& order, std::span<const float> model,
                            const ClientMemory& memory) const;
  // Uses the order's client, round, track, coverage and noise. Masks values that are not finite as zeros
  // (run::mask_update).
  Result<OutgoingUpdate> mask(const WorkOrder& order, const privacy::MaskingSpec& spec,
                              const privacy::Masking& masking, WorkResult result) const;

 private:
  const learn::ObjectiveSpec& objective() const { return task_.spec().training.objective; }
  bool scaffold() const { return objective().kind == "scaffold"; }
  bool dynamic() const { return objective().kind == "dynamic"; }
  bool contrastive() const { return objective().kind == "contrastive"; }
  Result<learn::EvaluationSums> evaluate(const WorkOrder& order, std::span<const float> model) const;
  Result<learn::EvaluationSums> evaluate_own(const WorkOrder& order, std::span<const float> model,
                                             const ClientMemory& memory) const;
  std::vector<float> with_own(std::span<const float> model, const ClientMemory& memory) const;
  Result<void> check_own(const ClientMemory& memory) const;
  // Trains the client's own parameters too, which become `own`.
  Result<learn::TrainingResult> train_all(const WorkOrder& order, std::span<const float> model,
                                          const ClientMemory& memory, std::span<float> update,
                                          std::vector<float>& own);
  Result<learn::TrainingResult> train_together(const WorkOrder& order, std::span<const float> model,
                                               std::span<float> update, std::vector<float>& own);
  Result<learn::TrainingResult> train_in_turn(const WorkOrder& order, std::vector<float>& model,
                                              std::span<float> update, std::vector<float>& own);
  Result<learn::TrainingResult> train_ditto(const WorkOrder& order, std::span<const float> model,
                                            const ClientMemory& memory, std::span<float> update,
                                            std::vector<float>& own);
  learn::Assignment assignment_of(const WorkOrder& order) const;
  Result<learn::TrainingResult> train(const WorkOrder& order, std::span<const float> model,
                                      const ClientMemory& memory, std::span<float> update);
  bool splits() const { return task_.spec().training.local_model == LocalModel::kSplit; }
  bool hides(const Result<learn::TrainingResult>& training, const Error& fault) const;
  Result<void> add_noise(const WorkOrder& order, WorkResult& result) const;
  void encode(const WorkOrder& order, ClientMemory& memory, WorkResult& result) const;
  // Sets correction_ and previous_ to what the objective takes from the memory.
  Result<void> recall(const WorkOrder& order, std::span<const float> model, const ClientMemory& memory);
  void remember_control(const WorkOrder& order, ClientMemory& memory, const WorkResult& result) const;
  void remember_model(const WorkOrder& order, std::span<const float> model, ClientMemory& memory,
                      const WorkResult& result) const;
  // The model from which an overlapping run's task is trained. If the client's last task was that of the
  // round before, the part of that task has the values that the client could know before that round ended.
  // kCorrupt if the memory is not that of such a part.
  Result<std::span<const float>> with_part(const WorkOrder& order, std::span<const float> model,
                                           const ClientMemory& memory);
  void remember_part(const WorkOrder& order, std::span<const float> model, ClientMemory& memory,
                     const WorkResult& result) const;
  void remember_updates(const WorkOrder& order, ClientMemory& memory, const WorkResult& result) const;

  const learn::Task& task_;
  protocol::CompressionSpec compression_;
  learn::PersonalSpec personal_;
  Coverage own_;  // parameters that stay on the client
  std::optional<privacy::LocalPrivacySpec> privacy_;
  std::int64_t statistics_whole_ = 0;
  bool hides_failures_ = false;
  Rng rng_;
  std::optional<learn::Trainer> trainer_;  // the built-in trainer, or
  Elsewhere elsewhere_;
  std::vector<float> correction_;    // SCAFFOLD: c - c_k; FedDyn: -g_k
  std::span<const float> previous_;  // MOON: the client's last model
  std::vector<float> begun_;         // the model with_part()
  std::vector<float> above_;         // split training: of the coordinator's half
};

}  // namespace fedge::client
