#include "server/engine/phase_tasks.h"

#include <doctest/doctest.h>

#include "aggregation/accumulator.h"
#include "core/rng.h"

namespace fedge::server {
namespace {

constexpr std::array kStates = {TaskState::kAssigned, TaskState::kOffered, TaskState::kFetching,
                                TaskState::kDone,     TaskState::kUnsent,  TaskState::kLost,
                                TaskState::kFailed};

}  // namespace

TEST_CASE("phase tasks: the counts are those of the tasks, whatever states these go through") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    PhaseTasks tasks;
    for (int step = 0; step < 200; ++step) {
      const ClientId client(static_cast<std::uint32_t>(rng.below(12)));
      RoundTask* task = tasks.find(client);
      CHECK((task != nullptr) == tasks.contains(client));
      if (task == nullptr)
        tasks.add(client);
      else
        tasks.set_state(*task, kStates[rng.below(kStates.size())]);
      if (rng.below(100) == 0) tasks.clear();
      std::size_t at_work = 0;
      for (const auto& [other, its] : tasks) at_work += its.at_work() ? 1U : 0U;
      CHECK(tasks.at_work() == at_work);
      std::size_t sum = 0;
      for (const TaskState state : kStates) {
        CHECK(tasks.count(state) == tasks.clients(state).size());
        sum += tasks.count(state);
      }
      CHECK(sum == tasks.size());
      CHECK(tasks.clients().size() == sum);
    }
  }
}

TEST_CASE("phase tasks: a coefficient becomes the factor that gives its client this part of the mean") {
  PhaseTasks tasks;
  tasks.add(ClientId(1)).samples = SampleCount(10);
  tasks.add(ClientId(2)).samples = SampleCount(30);
  const std::vector<aggregation::Selected> selected = {{.client = ClientId(1), .coefficient = 0.5},
                                                       {.client = ClientId(2), .coefficient = 0}};
  tasks.weigh(selected, false);
  CHECK(tasks.at(ClientId(1)).factor == doctest::Approx(2));  // 2 * 10 of 40 samples is a half
  CHECK(tasks.at(ClientId(1)).weighed);
  CHECK(tasks.at(ClientId(2)).factor == 1);
  CHECK_FALSE(tasks.at(ClientId(2)).weighed);
  tasks.weigh(selected, true);
  CHECK(tasks.at(ClientId(1)).factor == doctest::Approx(1));
  tasks.at(ClientId(1)).samples = SampleCount(1);
  tasks.at(ClientId(2)).samples = SampleCount(UINT64_MAX / 2);
  tasks.weigh(selected, false);
  CHECK(tasks.at(ClientId(1)).factor == aggregation::kMaxFactor);
}

}  // namespace fedge::server
