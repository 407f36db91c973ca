// PhaseTasks: the tasks of one track phase, by client, and how many are in each state. Pure. Cost: O(log
// tasks) for a client; counts are O(1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "aggregation/samplers/sampler.h"
#include "core/coverage.h"
#include "core/energy/power.h"
#include "core/ids.h"
#include "core/time.h"
#include "protocol/messages.h"

namespace fedge::server {

// kOffered: has trained; the draw of uploads is still to come. kUnsent: was not drawn. kLost: disconnected,
// may return before the deadline. kFailed: cannot do this round's task.
enum class TaskState { kAssigned, kOffered, kFetching, kDone, kUnsent, kLost, kFailed };

struct RoundTask {
  TaskState state = TaskState::kAssigned;  // changed by PhaseTasks::set_state()
  Coverage coverage;
  Coverage next;        // of its client's next task, if it is known
  Effort effort;        // what the planner asks of the device besides
  SampleCount samples;  // weight; before the offer: maximum weight
  SampleCount said;     // maximum, by its client's claim
  std::uint64_t steps = 1;
  double train_loss = 0;
  double norm = 0;
  double loss_rms = 0;
  double wanted_share = 0;
  double activation_correlation = 0;
  std::optional<double> joules;
  double factor = 1;     // multiplies its update in the aggregate
  bool weighed = false;  // the sampler set a coefficient
  bool partial = false;  // a partial upload may exist from before a disconnect
  bool missed = false;   // the sampler knows of its last loss
  Time assigned{};
  std::optional<protocol::UpdateOffer> offer;  // while kOffered

  // Takes what the client reports of its training.
  void take_report(const protocol::UpdateOffer& by);
  // Whether its client is training, uploading or done.
  bool at_work() const {
    return state != TaskState::kUnsent && state != TaskState::kLost && state != TaskState::kFailed;
  }
};

class PhaseTasks {
 public:
  // Creates the client's task, which it must not have yet.
  RoundTask& add(ClientId client);
  void set_state(RoundTask& task, TaskState to);
  void clear();

  // Null if the client has no task.
  RoundTask* find(ClientId client);
  const RoundTask* find(ClientId client) const;
  RoundTask& at(ClientId client) { return tasks_.at(client); }
  bool contains(ClientId client) const { return tasks_.contains(client); }

  std::size_t size() const { return tasks_.size(); }
  std::size_t count(TaskState state) const { return counts_[static_cast<std::size_t>(state)]; }
  std::size_t at_work() const;
  // Returns the clients with a task, or those with a task in this state, ascending.
  std::vector<ClientId> clients() const;
  std::vector<ClientId> clients(TaskState state) const;

  // Applies the sampler's coefficients, if any, as the factors of the selected clients' tasks. The
  // aggregator divides by the weights of all selected clients: a coefficient c becomes the factor c * (sum
  // of the weights) / (this client's weight). `uniform`: the aggregator weighs every update alike.
  void weigh(std::span<const aggregation::Selected> selected, bool uniform);

  // By ascending client.
  auto begin() { return tasks_.begin(); }
  auto end() { return tasks_.end(); }
  auto begin() const { return tasks_.begin(); }
  auto end() const { return tasks_.end(); }

 private:
  std::map<ClientId, RoundTask> tasks_;
  std::array<std::size_t, 7> counts_{};  // by state
};

}  // namespace fedge::server
