#include "sim/training_pool.h"

#include <algorithm>
#include <atomic>

#include "core/check.h"
#include "run/stored_update.h"
#include "sim/noise_key.h"

namespace fedge::sim {
namespace {

// Jobs of a thread in one group: enough to balance unequal sizes, few enough to bound memory.
constexpr std::size_t kJobsPerThread = 8;

// An update in memory; returns its buffer on destruction.
class MemoryValues final : public aggregation::UpdateValues {
 public:
  MemoryValues(AlignedBuffer<float> values, std::shared_ptr<SpareBuffers> spare)
      : buffer_(std::move(values)), spare_(std::move(spare)) {}
  ~MemoryValues() override { spare_->give(std::move(buffer_)); }
  MemoryValues(const MemoryValues&) = delete;
  MemoryValues& operator=(const MemoryValues&) = delete;
  std::span<const float> in_memory() const override { return buffer_.span(); }
  Result<void> read(std::size_t first, std::span<float> out) const override {
    std::copy_n(buffer_.data() + first, out.size(), out.data());
    return {};
  }

 private:
  AlignedBuffer<float> buffer_;
  std::shared_ptr<SpareBuffers> spare_;
};

}  // namespace

AlignedBuffer<float> SpareBuffers::take() {
  const std::lock_guard lock(mutex_);
  if (buffers_.empty()) return {};
  AlignedBuffer<float> buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

void SpareBuffers::give(AlignedBuffer<float> buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.push_back(std::move(buffer));
}

TrainingPool::TrainingPool(const learn::Task& task, const run::RunConfig& config, Parallel& parallel,
                           std::vector<client::Elsewhere> elsewhere)
    : task_(task),
      parallel_(parallel),
      chunk_size_(config.chunk_size),
      layout_(task.model().layout()->hash()) {
  for (client::Elsewhere& place : elsewhere)
    workers_.emplace_back(task, config.compression, config.seed, std::move(place));
  while (workers_.size() < (elsewhere.empty() ? parallel.width() : elsewhere.size()))
    workers_.emplace_back(task, config.compression, config.seed);
  for (client::LocalWork& worker : workers_) worker.count_in_shares(config.privacy.statistics_whole);
  if (config.secure.on)
    for (client::LocalWork& worker : workers_) worker.hide_failures();
  if (config.privacy.kind != run::DifferentialPrivacySpec::Kind::kLocal) return;
  noise_seed_ = config.seed;
  for (client::LocalWork& worker : workers_) worker.make_private(config.privacy.local());
}

void TrainingPool::enqueue(ClientId client, TrainingJob job) {
  if (has(client, job.task)) return;
  drop(client);
  queued_.emplace(client, std::move(job));
}

Result<const TrainedUpdate*> TrainingPool::result(ClientId client) {
  if (!computed_.contains(client)) FEDGE_TRY_VOID(compute_group(client));
  return &computed_.at(client);
}

TrainingPool::Work TrainingPool::begin(ClientId client) {
  auto node = queued_.extract(client);
  Work work{client, std::move(node.mapped()), {}, {}, {}};
  work.outcome.task = work.job.task;
  work.outcome.coverage = work.job.coverage;
  if (workers_.front().remembers_in(work.job.task.kind)) {
    auto memory = memories_[{client, work.job.task.track}].load(work.job.last_round);
    FEDGE_CHECK(memory && *memory, "a simulated client has lost its memory");
    work.memory = std::move(**memory);
  }
  return work;
}

void TrainingPool::carry_out(Work& work, client::LocalWork& worker) const {
  const ParameterVector* control = work.job.global.control.get();
  client::WorkOrder order{.client = work.client,
                          .round = work.job.task.round,
                          .data_share = work.job.data_share,
                          .coverage = work.job.coverage,
                          .control = control != nullptr ? control->values() : std::span<const float>(),
                          .max_steps = work.job.max_steps,
                          .flip_labels = work.job.flip_labels,
                          .stop = {},
                          .finish = {},
                          .kind = work.job.task.kind};
  if (const auto& given = work.job.global.statistics) {
    order.edges = given->edges;
    order.normalisation = &given->normalisation;
  }
  Secret noise;
  if (noise_seed_) {
    noise = client_noise_root(*noise_seed_, work.client);
    order.noise.emplace(run::PrivateSum::Noise{&noise, work.job.task});
  }
  const auto model = work.job.global.model->values();
  auto done = order.kind == TaskKind::kTraining ? worker.run(order, model, work.memory, spare_->take())
                                                : worker.answer(order, model, work.memory);
  if (!done) {
    work.outcome.failure = done.error();
    return;
  }
  work.outcome.training = done->training;
  work.outcome.norm = done->norm;
  work.outcome.fault = done->fault;
  work.outcome.sums = std::move(done->sums);
  work.outcome.shape = done->shape(layout_, work.job.coverage, chunk_size_);
  auto kept = keep(std::move(done->values), work.outcome.shape);
  if (!kept) {
    work.fault = kept.error();
    return;
  }
  work.outcome.values = std::move(*kept);
}

// Removes the object's id from the spool at once; its space is freed with the last reference to the values.
Result<std::shared_ptr<const aggregation::UpdateValues>> TrainingPool::keep(
    AlignedBuffer<float> values, const protocol::Manifest& shape) const {
  using Values = std::shared_ptr<const aggregation::UpdateValues>;
  if (spool_ == nullptr) return Values(std::make_shared<MemoryValues>(std::move(values), spare_));
  FEDGE_TRY(object, run::store_values(values.span(), shape, *spool_));
  spool_->remove(object->manifest().id());
  spare_->give(std::move(values));
  return Values(std::make_shared<run::StoredValues>(std::move(object)));
}

Result<void> TrainingPool::change(ClientId client,
                                  const std::function<Result<void>(std::span<float>)>& edit) {
  TrainedUpdate& update = computed_.at(client);
  AlignedBuffer<float> values = spare_->take();
  if (values.size() != update.coverage.count()) values = AlignedBuffer<float>(update.coverage.count());
  FEDGE_TRY_VOID(update.values->read(0, values.span()));
  FEDGE_TRY_VOID(edit(values.span()));
  FEDGE_TRY(kept, keep(std::move(values), update.shape));
  update.values = std::move(kept);
  return {};
}

Result<void> TrainingPool::compute_group(ClientId needed) {
  FEDGE_CHECK(queued_.contains(needed), "no training job for this client");
  std::vector<std::pair<Time, ClientId>> order;
  for (const auto& [client, job] : queued_)
    if (client != needed) order.emplace_back(job.finish, client);
  const std::size_t others = std::min(order.size(), parallel_.width() * kJobsPerThread - 1);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(others), order.end());
  order.resize(others);
  order.emplace_back(Time{}, needed);

  std::vector<Work> group;
  for (const auto& [finish, client] : order) group.push_back(begin(client));
  // One task a thread, each with its own trainer; the assignment to threads does not affect the result.
  std::atomic<std::size_t> next{0};
  parallel_.for_each(std::min(workers_.size(), group.size()), [&](std::size_t thread) {
    for (std::size_t i = next++; i < group.size(); i = next++) carry_out(group[i], workers_[thread]);
  });
  for (Work& work : group) {
    if (work.fault) return *work.fault;
    if (workers_.front().remembers() && !work.outcome.failure && work.job.task.kind == TaskKind::kTraining) {
      const auto saved = memories_[{work.client, work.job.task.track}].save(std::move(work.memory));
      FEDGE_CHECK(saved.has_value(), "memory in memory");
    }
    computed_.emplace(work.client, std::move(work.outcome));
  }
  return {};
}

bool TrainingPool::has(ClientId client, TaskId task) const {
  const auto queued = queued_.find(client);
  return (queued != queued_.end() && queued->second.task == task) || find(client, task) != nullptr;
}

const TrainedUpdate* TrainingPool::find(ClientId client, TaskId task) const {
  const auto computed = computed_.find(client);
  return computed != computed_.end() && computed->second.task == task ? &computed->second : nullptr;
}

TrainedUpdate TrainingPool::take(ClientId client) {
  auto node = computed_.extract(client);
  return node ? std::move(node.mapped()) : TrainedUpdate{};
}

void TrainingPool::drop(ClientId client) {
  queued_.erase(client);
  computed_.erase(client);
}

void TrainingPool::forget(TrackId track) {
  std::erase_if(memories_, [&](const auto& entry) { return entry.first.second == track; });
}

}  // namespace fedge::sim
