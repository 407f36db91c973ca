#include "server/coordinator/ports/run_aggregate.h"

#include <utility>

#include "server/report/model_files.h"
#include "server/store/input_codec.h"

namespace fedge::server {

RunAggregate::RunAggregate(Surroundings surroundings)
    : surroundings_(std::move(surroundings)),
      retry_(surroundings_.io, surroundings_.on_event, [this] { try_again(); }),
      folded_(std::move(surroundings_.parts.recovered.folded)),
      arriving_(std::move(surroundings_.parts.recovered.arriving)),
      removed_(surroundings_.data_directory) {}

template <class T>
void RunAggregate::on_worker(std::function<Result<T>()> work, std::function<void(const Result<T>&)> done) {
  surroundings_.worker.post(
      [this, alive = surroundings_.alive(), work = std::move(work), done = std::move(done)] {
        const auto outcome = std::make_shared<Result<T>>(work());
        protocol::post(surroundings_.io, [this, alive, outcome, done] {
          if (!stopped_) done(*outcome);
        });
      });
}

// Runs while the worker is idle: its folds and closes finish before Committed, which precedes a start.
Result<void> RunAggregate::start(const RunEngine::StartTrack& start) { return state().start(start); }

void RunAggregate::fold(const RunEngine::Fold& accepted) {
  run::StoredUpdate upload = surroundings_.uploads.take(accepted.client);
  folded_.push_back(upload.arrived);
  auto update = update_of(accepted, upload);
  fold(accepted.task.track, std::move(update), std::move(upload));
}

void RunAggregate::count(const RunEngine::Count& zeros) {
  fold(zeros.task.track,
       {.client = zeros.client,
        .weight = zeros.weight,
        .coverage = state().changed_by(zeros.coverage),
        .values = nullptr},
       {});
}

void RunAggregate::fold(TrackId track, aggregation::Update update, run::StoredUpdate upload) {
  on_worker<void>(
      [this, track, update = std::move(update), upload = std::move(upload)] {
        const auto folded = state().fold(track, {&update, 1});
        if (upload.plain != upload.arrived)
          surroundings_.parts.updates->remove(upload.plain->manifest().id());
        if (upload.arrived) upload.arrived->rest();
        if (upload.plain) upload.plain->rest();
        return folded;
      },
      [this](const Result<void>& folded) { fail_unless(folded); });
}

void RunAggregate::fail_unless(const Result<void>& folded) {
  if (!folded) surroundings_.on_failure(folded.error());
}

void RunAggregate::open_sum(std::vector<Range> cells, std::size_t task_sums) {
  on_worker<void>(
      [this, cells = std::move(cells), task_sums]() -> Result<void> {
        state().open_secure(cells, task_sums);
        return {};
      },
      [](const Result<void>&) {});
}

void RunAggregate::fold_masked(const RunEngine::Fold& accepted, std::vector<std::uint64_t> scalars) {
  const auto object = surroundings_.uploads.take(accepted.client).arrived;
  folded_.push_back(object);
  on_worker<void>(
      [this, client = accepted.client, scalars = std::move(scalars), object] {
        const auto folded = state().fold_masked(
            client, {.coverage = &object->manifest().coverage,
                     .read = [&](std::uint64_t first,
                                 std::span<std::byte> out) { return object->read_bytes(first, out); },
                     .scalars = scalars});
        object->rest();
        return folded;
      },
      [this](const Result<void>& folded) { fail_unless(folded); });
}

void RunAggregate::sum_up(TaskId task, privacy::Unmasking unmasking) {
  const auto masks = std::make_shared<privacy::Unmasking>(std::move(unmasking));
  on_worker<RunState::Summed>([this, task, masks] { return state().sum_up(task, *masks); },
                              [this](const Result<RunState::Summed>& sum) {
                                if (!sum) return surroundings_.on_summed(sum.error());
                                summed_ = sum->object;
                                surroundings_.journal.add(surroundings_.now(), encode_record(sum->turn),
                                                          sum->object);
                                surroundings_.on_summed(MaskedSum{sum->train_loss, sum->bad_shares});
                              });
}

// Takes the round's traffic and updates at once: the worker may already process the next round before its
// result arrives on this thread.
void RunAggregate::close(const RunEngine::CloseRound& turn, const Made& made) {
  const auto closing = std::make_shared<Closing>(Closing{.turn = turn});
  ++closing_;
  if (turn.ends_round) {
    closing->traffic = surroundings_.traffic();
    closing->folded = std::exchange(folded_, {});
    arriving_.clear();
  }
  closing->summed = std::exchange(summed_, nullptr);
  if (const auto* by_clients = std::get_if<server::MadeByClients>(&made))
    closing->made.emplace(RunState::MadeByClients{surroundings_.exchange->take(), by_clients->contributors});
  if (const auto* reason = std::get_if<NotMade>(&made)) closing->not_made = reason->reason;
  go_on(closing);
}

void RunAggregate::go_on(const std::shared_ptr<Closing>& closing) {
  on_worker<void>([this, closing] { return close_on_disk(*closing); },
                  [this, closing](const Result<void>& outcome) { closed(closing, outcome); });
}

Result<void> RunAggregate::close_on_disk(Closing& closing) {
  RunParts& parts = surroundings_.parts;
  if (!closing.closed) {
    auto outcome = state().close(closing.turn, closing.made ? &*closing.made : nullptr);
    // The clients' model may be invalid; the run then keeps its current model.
    if (!outcome && closing.made && outcome.error().code == ErrorCode::kInvalid) {
      closing.not_made = outcome.error().with_prefix("the model that most clients aggregated is invalid: ");
      parts.models->remove(closing.made->model->manifest().id());
      closing.made.reset();
      outcome = state().close(closing.turn);
    }
    if (!outcome) return outcome;
    closing.closed = true;
    if (!closing.not_made && closing.turn.kind == TaskKind::kTraining)
      closing.not_made = state().track(closing.turn.track).not_aggregated();
    if (!closing.not_made && !state().sums_made(closing.turn))
      closing.not_made = Error{ErrorCode::kUnavailable, "no client has sent sums that can be added"};
    const double elapsed = to_seconds(surroundings_.now());
    if (closing.turn.ends_round) closing.metrics = state().end_round({closing.traffic, elapsed, elapsed});
    closing.ends = state().ends_early();
  }
  if (!closing.turn.ends_round) return {};
  // Before the round is durable: a process that is killed in between computes the round again.
  if (keeps_model(state().config(), closing.metrics->round)) {
    FEDGE_TRY(models, state().load_models(RunState::Which::kLast));
    FEDGE_TRY_VOID(surroundings_.keep(closing.turn.round, models));
  }
  FEDGE_TRY(saved, state().save());
  closing.checkpoint = Checkpoint{closing.turn.round.value(), std::move(saved), to_json(*closing.metrics)};
  closing.removals = parts.models->take();
  return {};
}

void RunAggregate::closed(const std::shared_ptr<Closing>& closing, const Result<void>& outcome) {
  if (retry_.stopped(outcome)) return waiting_.push_back(closing);
  if (!outcome) {
    --closing_;
    return surroundings_.on_failure(outcome.error());
  }
  surroundings_.on_aggregated(closing->turn, closing->not_made);
  const auto done = [this, closing] {
    if (!stopped_) durable(closing);
  };
  if (closing->checkpoint) return surroundings_.journal.keep(std::move(*closing->checkpoint), done);
  // A phase that does not end its round has its sum in the journal; its members are told when that is
  // durable.
  if (closing->summed) return surroundings_.journal.drain(done);
  durable(closing);
}

void RunAggregate::try_again() {
  for (const auto& next : std::exchange(waiting_, {})) go_on(next);
}

// Removes the old model only when the new one survives a power cut.
void RunAggregate::durable(const std::shared_ptr<Closing>& closing) {
  RunParts& parts = surroundings_.parts;
  auto removed = parts.models->carry_out(closing->removals);
  for (auto& object : std::exchange(closing->folded, {})) {
    parts.updates->remove(object->manifest().id());
    removed.push_back(std::move(object));
  }
  if (closing->summed) parts.models->remove(closing->summed->manifest().id());
  removed.push_back(std::move(closing->summed));
  removed_.release(std::move(removed));
  --closing_;
  surroundings_.on_closed(closing->turn, !closing->not_made, closing->ends, closing->metrics);
}

void RunAggregate::stop() {
  stopped_ = true;
  retry_.cancel();
}

}  // namespace fedge::server
