#include "bench/training/federation.h"

#include <algorithm>
#include <atomic>

#include "bench/plain_optimizer.h"

namespace fedge::bench {

Federation::Federation(const Workload& workload, Parallel& parallel)
    : workload_(workload),
      parallel_(parallel),
      model_(workload.initial),
      whole_(Coverage::all(workload.initial.size())),
      accumulator_(workload.task->model().layout(), {}),
      optimizer_(plain_server_optimizer()),
      mean_(workload.initial.size()) {
  for (std::size_t i = 0; i < parallel.width(); ++i) trainers_.push_back(workload.task->make_trainer());
  for (std::size_t i = 0; i < workload.rounds.at(0).size(); ++i) updates_.emplace_back(model_.size());
}

Result<void> Federation::train_round() {
  const std::vector<ClientId>& clients = workload_.rounds.at(round_);
  const RoundNumber number(static_cast<std::uint32_t>(++round_));
  std::vector<aggregation::UpdateView> views(clients.size());
  std::atomic<std::size_t> next{0};
  parallel_.for_each(trainers_.size(), [&](std::size_t thread) {
    for (std::size_t i = next++; i < clients.size(); i = next++) {
      const learn::TrainingResult result =
          workload_.task
              ->train({.client = clients[i], .round = number}, model_, updates_[i].span(), trainers_[thread])
              .value();
      views[i] = {result.samples, &whole_, updates_[i].span()};
    }
  });
  accumulator_.clear();
  FEDGE_TRY_VOID(accumulator_.fold(views, parallel_));
  accumulator_.mean(0, mean_);
  optimizer_->step(0, model_, mean_);
  return {};
}

}  // namespace fedge::bench
