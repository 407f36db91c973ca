#include "sim/training/training_pool.h"

#include <algorithm>

#include "core/check.h"
#include "run/stored_update.h"
#include "sim/noise_key.h"

namespace fedge::sim {
namespace {

// Results that may be ahead of their need, for each thread, and their bytes in memory: enough that no thread
// waits while the simulation works on events, few enough to bound memory.
constexpr std::size_t kAheadPerThread = 16;
constexpr std::size_t kBytesAhead = std::size_t{8} << 20;

std::size_t most_ahead(std::size_t threads, std::size_t update_bytes) {
  return threads + std::clamp<std::size_t>(kBytesAhead / std::max<std::size_t>(update_bytes, 1), 1,
                                           kAheadPerThread * threads);
}

}  // namespace

void describe(const TrainedUpdate& update, protocol::UpdateOffer& offer) {
  offer.update = update.shape;
  offer.samples = update.training.samples;
  offer.steps = update.training.steps;
  offer.train_loss = update.training.mean_loss;
  offer.norm = update.norm;
  offer.loss_rms = update.training.rms_loss;
  offer.wanted_share = update.training.wanted_share;
  offer.activation_correlation = update.training.activation_correlation;
  offer.sums = update.sums;
}

TrainingPool::TrainingPool(const learn::Task& task, const run::RunConfig& config, Parallel& parallel,
                           std::vector<client::Elsewhere> elsewhere)
    : task_(task),
      parallel_(parallel),
      chunk_size_(config.chunk_size),
      layout_(task.model().layout()->hash()),
      fixed_point_(config.strategy.fixed_point),
      masked_(config.secure.on),
      most_ahead_(most_ahead(parallel.width(), task.model().layout()->size() * sizeof(float))) {
  for (client::Elsewhere& place : elsewhere)
    workers_.emplace_back(task, config.compression, config.seed, std::move(place));
  while (workers_.size() < (elsewhere.empty() ? parallel.width() : elsewhere.size()))
    workers_.emplace_back(task, config.compression, config.seed);
  for (client::LocalWork& worker : workers_) {
    worker.count_in_shares(config.privacy.statistics_whole);
    if (config.secure.on) worker.hide_failures();
    if (config.privacy.kind == run::DifferentialPrivacySpec::Kind::kLocal)
      worker.make_private(config.privacy.local());
    free_.push_back(&worker);
  }
  if (config.privacy.kind == run::DifferentialPrivacySpec::Kind::kLocal) noise_seed_ = config.seed;
  parallel_.set_background(this);
}

TrainingPool::~TrainingPool() { parallel_.set_background(nullptr); }

void TrainingPool::spool_to(protocol::ChunkStore& store) {
  const Lock lock(mutex_);
  spool_ = &store;
  most_ahead_ = parallel_.width() * kAheadPerThread;
}

void TrainingPool::spill_to(const std::filesystem::path& directory, std::size_t budget) {
  states_.spill_to(directory, budget);
}

void TrainingPool::enqueue(ClientId client, TrainingJob job) {
  if (has(client, job.task)) return;
  drop(client);
  SharedWork::Place place;
  if (shared_ != nullptr)
    place = shared_->place(client, learn::trained_samples(task_.sample_count(client), job.data_share),
                           remembers());
  {
    const Lock lock(mutex_);
    if (job.global->model && place.here) queue_.emplace(job.needed, client);
    works_[client] = std::make_shared<Work>(Work{.client = client, .job = std::move(job), .place = place});
    if (ahead_ >= most_ahead_) return;
  }
  parallel_.wake();
}

std::optional<protocol::UpdateOffer> TrainingPool::expected(ClientId client) const {
  const Lock lock(mutex_);
  const Work& work = *works_.at(client);
  return workers_.front().expected(order_of(work, *work.job.global), layout_, chunk_size_);
}

Result<const TrainedUpdate*> TrainingPool::result(ClientId client) {
  Lock lock(mutex_);
  const std::shared_ptr<Work> work = works_.at(client);
  set_asked(*work);
  if (log_ != nullptr && log_->replaying()) return recall(*work);
  if (!work->place.here) FEDGE_TRY_VOID(fetch(lock, work));
  while (work->stage != Stage::kComputed) {
    if (work->stage == Stage::kQueued && !free_.empty())
      compute(lock, work);
    else if (may_begin())
      compute_first(lock);  // while another thread trains the wanted one
    else
      changed_.wait(lock);
  }
  const bool more = may_begin();
  lock.unlock();
  if (more) parallel_.wake();
  if (work->failure) std::rethrow_exception(work->failure);
  if (work->fault) return *work->fault;
  if (log_ != nullptr) log_->put_training(client, work->outcome);
  return &work->outcome;
}

// The rank that carries the job out asks for it at the same event at the latest.
Result<void> TrainingPool::fetch(Lock& lock, const std::shared_ptr<Work>& work) {
  while (work->stage != Stage::kComputed) {
    const bool busy = may_begin();
    lock.unlock();
    auto outcome = shared_->take_outcome(work->place, !busy);
    lock.lock();
    if (!outcome) return outcome.error();
    if (!*outcome) {
      if (may_begin()) compute_first(lock);
      continue;
    }
    complete(*work, std::move((*outcome)->update));
    work->outcome.elsewhere = !shared_->values_travel();
    if (shared_->values_travel() && !work->outcome.failure) {
      FEDGE_TRY(kept, keep(std::move((*outcome)->values), work->outcome.coverage));
      work->outcome.values = std::move(kept);
    }
    work->stage = Stage::kComputed;
  }
  return {};
}

void TrainingPool::complete(Work& work, TrainedUpdate outcome) const {
  protocol::Manifest& shape = outcome.shape;
  shape.coverage = work.job.coverage;
  outcome.coverage = task_.changed_by(work.job.coverage);
  shape.layout = layout_;
  shape.chunk_size = chunk_size_;
  shape.chunks.resize((shape.payload_size + chunk_size_ - 1) / chunk_size_);
  work.outcome = std::move(outcome);
}

Result<const TrainedUpdate*> TrainingPool::recall(Work& work) {
  FEDGE_TRY(update, log_->take_training(work.client, work.job.task));
  const auto expected = workers_.front().expected(order_of(work, *work.job.global), layout_, chunk_size_);
  const SampleCount samples = update.training.samples;
  if (expected && !update.failure && samples.value() > 0 && samples != expected->samples)
    return RunLog::does_not_fit();
  complete(work, std::move(update));
  return &work.outcome;
}

void TrainingPool::add_live(LiveStates& states) const {
  const Lock lock(mutex_);
  for (const auto& [client, work] : works_)
    if (const GlobalState& global = *work->job.global; global.model) states.emplace(global.version, global);
}

void TrainingPool::go_on(const LiveStates& states) {
  const Lock lock(mutex_);
  for (const auto& [client, work] : works_) {
    GlobalState& global = *work->job.global;
    const auto live = states.find(global.version);
    if (live == states.end()) continue;
    global.model = live->second.model;
    global.control = live->second.control;
    work->outcome = {};
    if (!work->asked && work->place.here) queue_.emplace(work->job.needed, client);
  }
}

bool TrainingPool::work() {
  Lock lock(mutex_);
  if (!may_begin()) return false;
  compute_first(lock);
  return true;
}

bool TrainingPool::may_begin() const { return !queue_.empty() && !free_.empty() && ahead_ < most_ahead_; }

void TrainingPool::compute_first(Lock& lock) {
  compute(lock, std::shared_ptr<Work>(works_.at(queue_.begin()->second)));
}

// Computes a queued work, without the lock. A worker must be free.
void TrainingPool::compute(Lock& lock, const std::shared_ptr<Work>& work) {
  const TaskId task = work->job.task;
  queue_.erase({work->job.needed, work->client});
  work->stage = Stage::kRunning;
  if (!work->asked) ++ahead_;
  client::LocalWork* const worker = free_.back();
  free_.pop_back();
  const GlobalState global = *work->job.global;
  lock.unlock();
  try {
    carry_out(*work, global, *worker);
  } catch (...) {
    work->failure = std::current_exception();
  }
  if (shared_ != nullptr && !work->failure && !work->fault)
    shared_->broadcast_outcome(work->place, work->client, work->outcome);
  lock.lock();
  const bool sound = !work->fault && !work->failure && !work->outcome.failure;
  if (worker->remembers() && sound && !work->dropped && task.kind == TaskKind::kTraining) {
    states_.save(work->client, task.track, std::move(work->memory));
    lock.unlock();
    if (const auto shrunk = states_.shrink(); !shrunk) work->fault = shrunk.error();
    lock.lock();
  }
  free_.push_back(worker);
  if (!work->job.global->model) work->outcome.values.reset();  // released meanwhile
  work->stage = Stage::kComputed;
  changed_.notify_all();
}

client::WorkOrder TrainingPool::order_of(const Work& work, const GlobalState& global) {
  const TrainingJob& job = work.job;
  const ParameterVector* control = global.control.get();
  client::WorkOrder order{.client = work.client,
                          .round = job.task.round,
                          .data_share = job.data_share,
                          .coverage = job.coverage,
                          .control = control != nullptr ? control->values() : std::span<const float>(),
                          .max_steps = job.max_steps,
                          .flip_labels = job.flip_labels,
                          .stop = {},
                          .finish = {},
                          .kind = job.task.kind,
                          .kept = job.kept};
  if (const auto& given = global.statistics) {
    order.edges = given->edges;
    order.normalisation = &given->normalisation;
  }
  return order;
}

void TrainingPool::carry_out(Work& work, const GlobalState& global, client::LocalWork& worker) {
  client::WorkOrder order = order_of(work, global);
  TrainedUpdate& outcome = work.outcome;
  outcome.task = work.job.task;
  if (!global.model) {
    outcome.failure = Error{ErrorCode::kUnavailable, "the round is over"};
    return;
  }
  if (worker.remembers_in(order.kind)) {
    auto state = states_.load(work.client, work.job.task.track, work.job.last_round);
    if (!state) work.fault = state.error();
    if (!state) return;
    work.memory = std::move(*state);
  }
  outcome.coverage = task_.changed_by(work.job.coverage);
  Secret noise;
  if (noise_seed_) {
    noise = client_noise_root(*noise_seed_, work.client);
    order.noise.emplace(run::PrivateSum::Noise{&noise, work.job.task});
  }
  const auto model = global.model->values();
  auto done = order.kind == TaskKind::kTraining ? worker.run(order, model, work.memory, spare_->take())
                                                : worker.answer(order, model, work.memory);
  if (!done) {
    outcome.failure = done.error();
    return;
  }
  outcome.training = done->training;
  outcome.norm = done->norm;
  outcome.fault = done->fault;
  outcome.sums = std::move(done->sums);
  outcome.shape = done->shape(layout_, work.job.coverage, chunk_size_);
  if (!done->above.empty()) {
    auto both = task_.split_layout().joined(work.job.coverage, done->values.span(), done->above);
    FEDGE_CHECK(both, "halves of one training");
    done->values = std::move(*both);
  }
  if (order.kind == TaskKind::kTraining && !masked_)
    outcome.inspected = run::inspect_values({*task_.model().layout(), fixed_point_}, outcome.coverage,
                                            BorrowedValues(done->values.span()));
  auto kept = keep(std::move(done->values), outcome.coverage);
  if (!kept) {
    work.fault = kept.error();
    return;
  }
  outcome.values = std::move(*kept);
}

// Removes the object's id from the spool at once; its space is freed with the last reference to the values.
Result<std::shared_ptr<const aggregation::UpdateValues>> TrainingPool::keep(AlignedBuffer<float> values,
                                                                            const Coverage& coverage) const {
  using Values = std::shared_ptr<const aggregation::UpdateValues>;
  if (spool_ == nullptr) return values_in(std::move(values), spare_);
  protocol::Manifest shape;
  shape.layout = layout_;
  shape.coverage = coverage;
  shape.chunk_size = chunk_size_;
  FEDGE_TRY(object, run::store_values(values.span(), shape, *spool_));
  spool_->remove(object->manifest().id());
  spare_->give(std::move(values));
  return Values(std::make_shared<run::StoredValues>(std::move(object)));
}

Result<void> TrainingPool::change(ClientId client,
                                  const std::function<Result<void>(std::span<float>)>& edit) {
  TrainedUpdate& update = works_.at(client)->outcome;
  AlignedBuffer<float> values = spare_->take();
  if (values.size() != update.coverage.count()) values = AlignedBuffer<float>(update.coverage.count());
  FEDGE_TRY_VOID(update.values->read(0, values.span()));
  FEDGE_TRY_VOID(edit(values.span()));
  FEDGE_TRY(kept, keep(std::move(values), update.coverage));
  update.values = std::move(kept);
  update.inspected.reset();
  return {};
}

bool TrainingPool::has(ClientId client, TaskId task) const {
  const Lock lock(mutex_);
  const auto found = works_.find(client);
  return found != works_.end() && found->second->job.task == task;
}

Result<const TrainedUpdate*> TrainingPool::arrived(ClientId client, TaskId task) {
  {
    const Lock lock(mutex_);
    const auto found = works_.find(client);
    const bool has = found != works_.end() && found->second->job.task == task;
    if (!has || found->second->job.global->released) return static_cast<const TrainedUpdate*>(nullptr);
  }
  return result(client);
}

TrainedUpdate TrainingPool::take(ClientId client) {
  const Lock lock(mutex_);
  const auto found = works_.find(client);
  if (found == works_.end() || found->second->stage != Stage::kComputed) return {};
  TrainedUpdate update = std::move(found->second->outcome);
  if (shared_ != nullptr) shared_->forget(found->second->place);
  works_.erase(found);
  return update;
}

void TrainingPool::drop(ClientId client) {
  const Lock lock(mutex_);
  const auto node = works_.extract(client);
  if (!node) return;
  Work& work = *node.mapped();
  work.dropped = true;
  if (shared_ != nullptr) shared_->forget(work.place);
  if (work.stage == Stage::kQueued) queue_.erase({work.job.needed, client});
  set_asked(work);
}

void TrainingPool::postpone(ClientId client) {
  bool more = false;
  {
    const Lock lock(mutex_);
    const auto found = works_.find(client);
    if (found == works_.end()) return;
    Work& work = *found->second;
    set_asked(work);
    queue_.erase({work.job.needed, client});
    more = may_begin();
  }
  if (more) parallel_.wake();
}

void TrainingPool::set_asked(Work& work) {
  if (!std::exchange(work.asked, true) && work.stage != Stage::kQueued) --ahead_;
}

void TrainingPool::forget(TrackId track) { states_.forget(track); }

void TrainingPool::release(const SharedState& state) {
  const Lock lock(mutex_);
  for (const auto& [client, work] : works_) {
    if (work->job.global != state) continue;
    queue_.erase({work->job.needed, client});
    if (work->stage == Stage::kComputed) work->outcome.values.reset();
  }
  *state = {.released = true};
}

}  // namespace fedge::sim
