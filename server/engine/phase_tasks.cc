#include "server/engine/phase_tasks.h"

#include <algorithm>
#include <utility>

#include "aggregation/accumulator.h"
#include "core/check.h"

namespace fedge::server {

void RoundTask::take_report(const protocol::UpdateOffer& by) {
  train_loss = by.train_loss;
  norm = by.norm;
  loss_rms = by.loss_rms;
  wanted_share = by.wanted_share;
  activation_correlation = by.activation_correlation;
  if (by.joules) joules = by.joules;
}

RoundTask& PhaseTasks::add(ClientId client) {
  const auto [added, is_new] = tasks_.try_emplace(client);
  FEDGE_CHECK(is_new, "a client has one task a turn");
  ++counts_[static_cast<std::size_t>(added->second.state)];
  return added->second;
}

void PhaseTasks::set_state(RoundTask& task, TaskState to) {
  --counts_[static_cast<std::size_t>(std::exchange(task.state, to))];
  ++counts_[static_cast<std::size_t>(to)];
}

void PhaseTasks::clear() {
  tasks_.clear();
  counts_ = {};
}

const RoundTask* PhaseTasks::find(ClientId client) const {
  const auto found = tasks_.find(client);
  return found == tasks_.end() ? nullptr : &found->second;
}

RoundTask* PhaseTasks::find(ClientId client) {
  return const_cast<RoundTask*>(std::as_const(*this).find(client));
}

std::size_t PhaseTasks::at_work() const {
  return size() - count(TaskState::kUnsent) - count(TaskState::kLost) - count(TaskState::kFailed);
}

std::vector<ClientId> PhaseTasks::clients() const {
  std::vector<ClientId> clients;
  for (const auto& [client, task] : tasks_) clients.push_back(client);
  return clients;
}

std::vector<ClientId> PhaseTasks::clients(TaskState state) const {
  std::vector<ClientId> clients;
  for (const auto& [client, task] : tasks_)
    if (task.state == state) clients.push_back(client);
  return clients;
}

void PhaseTasks::weigh(std::span<const aggregation::Selected> selected, bool uniform) {
  const auto weight = [&](const RoundTask& task) {
    return uniform ? 1.0 : static_cast<double>(task.samples.value());
  };
  double sum = 0;
  for (const auto& choice : selected) sum += weight(tasks_.at(choice.client));
  for (const auto& choice : selected) {
    if (choice.coefficient == 0) continue;
    RoundTask& task = tasks_.at(choice.client);
    task.weighed = true;
    task.factor = std::min(choice.coefficient * sum / weight(task), aggregation::kMaxFactor);
  }
}

}  // namespace fedge::server
