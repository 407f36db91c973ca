#include "client/trainers/external_trainer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "client/trainers/trainer_predictions.h"
#include "client/trainers/trainer_update.h"
#include "core/safetensors.h"
#include "learn/models/external.h"

namespace fedge::client {
namespace {

constexpr int kAttempts = 3;  // starts of a program that does not get ready for a run
// Doublings of the one-second pause between starts of a program that keeps failing.
constexpr std::uint32_t kDoublings = 6;

// No pause after the first failure, then 1, 2, 4, ... 64 seconds after the last start.
Duration pause_after(std::uint32_t failures) {
  if (failures < 2) return Duration::zero();
  return std::chrono::seconds(std::int64_t{1} << std::min(failures - 2, kDoublings));
}

}  // namespace

ExternalTrainer::ExternalTrainer(TrainerOptions options) : options_(std::move(options)) {}
ExternalTrainer::~ExternalTrainer() { shut_down(); }

Result<TrainerReady> ExternalTrainer::begin(Run run) {
  const std::lock_guard lock(mutex_);
  conversation_.reset();
  run_.reset();
  failures_ = 0;
  task_ = 0;
  FEDGE_TRY_VOID(learn::check_program_trains(run.task.training));
  FEDGE_TRY(header, safetensors_header(*run.layout, {}));
  payload_header_ = std::move(header);
  run_ = std::move(run);
  for (int attempt = 1;; ++attempt) {
    auto ready = start({});
    if (ready || attempt == kAttempts || leaving_.stop_requested()) return ready;
  }
}

// Starts the program and waits until it is ready for the run's tasks.
Result<TrainerReady> ExternalTrainer::start(const std::stop_token& stop) {
  FEDGE_TRY_VOID(wait_for_turn(stop));
  started_ = trainer_now();
  auto begun = Conversation::begin(options_, {.update = max_update_payload(run_->layout->size_bytes()),
                                              .predictions = kMaxPredictionsPayload});
  if (!begun) return lost(begun.error());
  conversation_ = std::move(*begun);
  conversation_->say(
      hello_frame({run_->client, run_->name, run_->seed, run_->task, run_->data, run_->clients}));
  const auto frame =
      conversation_->listen({.task = 0, .stop = stop, .finish = {}, .leave = leaving_.get_token()});
  if (!frame) return lost(frame.error());
  if (const auto* failure = std::get_if<TrainerFailure>(&frame->message))
    return lost(invalid("the trainer program refused the run: " + failure->reason));
  const auto& ready = std::get<TrainerReady>(frame->message);
  ready_ = ready;
  return ready;
}

Result<void> ExternalTrainer::wait_for_turn(const std::stop_token& stop) {
  const Time due = started_ + pause_after(failures_);
  std::mutex mutex;
  std::condition_variable_any bell;
  const std::stop_callback ring(stop, [&] {
    const std::lock_guard guard(mutex);  // the wait has begun, or will see the request
    bell.notify_all();
  });
  std::unique_lock lock(mutex);
  const Duration pause = failures_ == 0 ? Duration::zero() : due - trainer_now();
  if (pause > Duration::zero())
    bell.wait_for(lock, leaving_.get_token(), pause, [&] { return stop.stop_requested(); });
  if (leaving_.stop_requested() || stop.stop_requested())
    return Error{ErrorCode::kUnavailable, "the task was cancelled before the trainer program was started"};
  return {};
}

Error ExternalTrainer::lost(const Error& error) {
  ++failures_;
  conversation_.reset();
  return error;
}

// Makes sure that a program is there for the next task.
Result<void> ExternalTrainer::begin_task(const std::stop_token& stop) {
  if (!run_) return Error{ErrorCode::kUnavailable, "no trainer program has been started for this run"};
  if (!conversation_) {
    FEDGE_TRY(again, start(stop));
    static_cast<void>(again);
  }
  ++task_;
  return {};
}

Result<TrainerFrame> ExternalTrainer::answer(const Conversation::Waiting& waiting) {
  auto frame = conversation_->listen(waiting);
  if (!frame) return lost(frame.error());
  return frame;
}

Result<learn::TrainingResult> ExternalTrainer::train(const WorkOrder& order, std::span<const float> model,
                                                     std::span<float> update) {
  const std::lock_guard lock(mutex_);
  FEDGE_TRY_VOID(begin_task(order.stop));
  VirtualSamples own{
      .count = learn::trained_samples(ready_.samples, order.data_share), .numbers = {}, .path = {}};
  if (run_->samples_of) own = run_->samples_of(order.client, order.data_share);
  const Rng seed = Rng(run_->seed).fork("trainer", order.round.value(), order.client.value());
  FEDGE_TRY(frame, train_frame({.task = task_,
                                .round = order.round,
                                .track = order.track,
                                .seed = Rng(seed).next_u64() >> 11,
                                .time_left = order.time_left,
                                .data_share = order.data_share,
                                .coverage = order.coverage,
                                .model_size = model.size(),
                                .payload_bytes = payload_header_.size() + model.size_bytes(),
                                .client = run_->samples_of ? std::optional(order.client) : std::nullopt,
                                .samples = own.numbers,
                                .path = own.path}));
  conversation_->say(std::move(frame) + payload_header_);
  conversation_->lend(std::as_bytes(model));
  FEDGE_TRY(
      answered,
      answer({.task = task_, .stop = order.stop, .finish = order.finish, .leave = leaving_.get_token()}));
  if (const auto* failure = std::get_if<TrainerFailure>(&answered.message)) {
    failures_ = 0;
    return Error{ErrorCode::kUnavailable, "the trainer program could not train: " + failure->reason};
  }
  if (!std::holds_alternative<TrainerUpdate>(answered.message))
    return lost(invalid("the trainer program answered a training task with predictions"));
  failures_ = 0;
  return take(answered, order, own.count, model, update);
}

Result<learn::EvaluationSums> ExternalTrainer::evaluate(const WorkOrder& order,
                                                        std::span<const float> model) {
  const std::lock_guard lock(mutex_);
  FEDGE_TRY_VOID(begin_task(order.stop));
  EvaluationQuestion question{
      .task = task_, .round = order.round, .track = order.track, .time_left = order.time_left};
  if (!run_->evaluated_by) return ask(std::move(question), ready_.evaluates, order.stop, model);
  const VirtualSamples own = run_->evaluated_by(order.client);
  question.client = order.client;
  question.path = own.path;
  return ask(std::move(question), own.count, order.stop, model);
}

Result<learn::EvaluationSums> ExternalTrainer::evaluate_on(const VirtualSamples& samples, RoundNumber round,
                                                           std::span<const float> model) {
  const std::lock_guard lock(mutex_);
  FEDGE_TRY_VOID(begin_task({}));
  return ask({.task = task_, .round = round, .track = {}, .of = samples.of, .samples = samples.numbers},
             samples.count, {}, model);
}

Result<learn::EvaluationSums> ExternalTrainer::ask(EvaluationQuestion question, SampleCount samples,
                                                   const std::stop_token& stop,
                                                   std::span<const float> model) {
  question.payload_bytes = payload_header_.size() + model.size_bytes();
  FEDGE_TRY(frame, evaluate_frame(question));
  conversation_->say(std::move(frame) + payload_header_);
  conversation_->lend(std::as_bytes(model));
  // A program that is told a path divides the data there itself, possibly in another way.
  return count(samples, question.path.empty(), stop);
}

// Receives the predictions of the current task. A program that has sent wrong ones may send more, so its
// state is unknown. `all`: there must be one for each of the samples.
Result<learn::EvaluationSums> ExternalTrainer::count(SampleCount samples, bool all,
                                                     const std::stop_token& stop) {
  learn::EvaluationSums sums(run_->sums);
  SampleCount counted;
  for (;;) {
    FEDGE_TRY(frame, answer({.task = task_, .stop = stop, .finish = {}, .leave = leaving_.get_token()}));
    if (std::holds_alternative<TrainerPredictions>(frame.message)) {
      const auto more = count_predictions(frame.payload, samples - counted, sums);
      if (!more) return lost(more.error());
      counted += *more;
      continue;
    }
    if (std::holds_alternative<TrainerUpdate>(frame.message))
      return lost(invalid("the trainer program answered an evaluation with an update"));
    failures_ = 0;
    if (const auto* failure = std::get_if<TrainerFailure>(&frame.message))
      return Error{ErrorCode::kUnavailable, "the trainer program could not evaluate: " + failure->reason};
    const SampleCount said = std::get<TrainerEvaluation>(frame.message).samples;
    if (said != counted || (all && counted != samples))
      return invalid("the trainer program says that it evaluated " + std::to_string(said.value()) +
                     " samples and sent predictions for " + std::to_string(counted.value()) +
                     "; this evaluation has " + std::to_string(samples.value()));
    sums.end_client(counted.value());
    return sums;
  }
}

Result<learn::TrainingResult> ExternalTrainer::take(const TrainerFrame& frame, const WorkOrder& order,
                                                    SampleCount most, std::span<const float> model,
                                                    std::span<float> update) {
  const auto& sent = std::get<TrainerUpdate>(frame.message);
  if (sent.samples > most)
    return invalid("the trainer program reports training on " + std::to_string(sent.samples.value()) +
                   " samples; this task may use at most " + std::to_string(most.value()) +
                   (run_->clients > 0 ? " of client " + std::to_string(order.client.value())
                                      : " of the device's " + std::to_string(ready_.samples.value())));
  const learn::TrainingSpec& spec = run_->task.training;
  const std::uint64_t steps = spec.steps(sent.samples.value());
  if (sent.steps > steps)
    return invalid("the trainer program reports " + std::to_string(sent.steps) + " steps; " +
                   (spec.local_steps > 0
                        ? "training.local_steps is "
                        : std::to_string(spec.local_epochs) + " epochs of " +
                              std::to_string(sent.samples.value()) + " samples in batches of " +
                              std::to_string(spec.batch_size) + " are at most ") +
                   std::to_string(steps));
  FEDGE_TRY_VOID(trained_difference(frame.payload, {*run_->layout, model, order.coverage}, update));
  return learn::TrainingResult{sent.samples, sent.steps, sent.train_loss, sent.rms_loss};
}

void ExternalTrainer::shut_down() {
  leave();
  const std::lock_guard lock(mutex_);
  conversation_.reset();
  run_.reset();
}

}  // namespace fedge::client
