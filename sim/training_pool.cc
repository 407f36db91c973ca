#include "sim/training_pool.h"

#include <algorithm>
#include <atomic>

#include "core/check.h"

namespace fedge::sim {
namespace {

// Jobs a thread gets in one group: enough to even out unequal sizes, few enough to bound memory.
constexpr std::size_t kJobsPerThread = 8;

}  // namespace

TrainingPool::TrainingPool(const learn::Task& task, Parallel& parallel) : task_(task), parallel_(parallel) {
  for (std::size_t i = 0; i < parallel.width(); ++i) trainers_.push_back(task.make_trainer());
}

void TrainingPool::enqueue(ClientId client, RoundNumber round, std::shared_ptr<const ParameterVector> model,
                           Time finish) {
  drop(client);
  queued_.emplace(client, Job{round, std::move(model), finish});
}

const learn::TrainingResult& TrainingPool::result(ClientId client) {
  if (!computed_.contains(client)) compute_group(client);
  return computed_.at(client).result;
}

void TrainingPool::compute_group(ClientId needed) {
  FEDGE_CHECK(queued_.contains(needed), "no training job for this client");
  struct Work {
    ClientId client;
    Job job;
    TrainedUpdate outcome;
  };
  std::vector<std::pair<Time, ClientId>> order;
  for (const auto& [client, job] : queued_)
    if (client != needed) order.emplace_back(job.finish, client);
  const std::size_t others = std::min(order.size(), parallel_.width() * kJobsPerThread - 1);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(others), order.end());
  order.resize(others);
  order.emplace_back(Time{}, needed);

  std::vector<Work> group;
  for (const auto& [finish, client] : order) {
    auto node = queued_.extract(client);
    Work work{client, std::move(node.mapped()), {}};
    work.outcome.round = work.job.round;
    if (!spare_.empty()) {
      work.outcome.update = std::move(spare_.back());
      spare_.pop_back();
    } else {
      work.outcome.update = AlignedBuffer<float>(task_.model().layout()->size());
    }
    group.push_back(std::move(work));
  }
  // One task a thread, each with its own trainer; which thread trains whom cannot be seen in the result.
  std::atomic<std::size_t> next{0};
  parallel_.for_each(std::min(trainers_.size(), group.size()), [&](std::size_t thread) {
    for (std::size_t i = next++; i < group.size(); i = next++) {
      Work& work = group[i];
      work.outcome.result =
          task_
              .train({.client = work.client, .round = work.job.round}, work.job.model->values(),
                     work.outcome.update.span(), trainers_[thread])
              .value();
    }
  });
  for (Work& work : group) computed_.emplace(work.client, std::move(work.outcome));
}

bool TrainingPool::has(ClientId client, RoundNumber round) const {
  const auto queued = queued_.find(client);
  return (queued != queued_.end() && queued->second.round == round) || find(client, round) != nullptr;
}

const TrainedUpdate* TrainingPool::find(ClientId client, RoundNumber round) const {
  const auto computed = computed_.find(client);
  return computed != computed_.end() && computed->second.round == round ? &computed->second : nullptr;
}

AlignedBuffer<float> TrainingPool::take(ClientId client) {
  auto node = computed_.extract(client);
  return node ? std::move(node.mapped().update) : AlignedBuffer<float>();
}

void TrainingPool::drop(ClientId client) {
  queued_.erase(client);
  if (auto buffer = take(client); buffer.size() > 0) recycle(std::move(buffer));
}

void TrainingPool::recycle(AlignedBuffer<float> buffer) { spare_.push_back(std::move(buffer)); }

}  // namespace fedge::sim
