// Tests what a task says about its client's next task.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

const Coverage kEven = Coverage::of({{0, 40}});
const Coverage kOdd = Coverage::of({{40, kParameters}});

// Plans the two parts of a model in turn.
class InTurn final : public aggregation::Planner {
 public:
  Coverage plan(const aggregation::PlanRequest& request) override {
    return request.round.value() % 2 == 0 ? kEven : kOdd;
  }
  double share(ClientId) const override { return 0.5; }
};

class Whole final : public aggregation::Planner {
 public:
  Coverage plan(const aggregation::PlanRequest&) override { return Coverage::all(kParameters); }
  double share(ClientId) const override { return 1; }
};

template <class Plans>
std::vector<Coverage> announced(bool overlaps, std::uint32_t clients, std::uint32_t rounds = 2) {
  Harness harness;
  harness.rules.overlaps = overlaps;
  harness.rules.first_round_clients = clients;
  harness.rules.rounds = rounds;
  harness.engine_ = std::make_unique<RoundEngine>(
      harness.rules, TrackBook(harness.policy,
                               [&harness] {
                                 return Deciders{harness.sampler(), std::make_unique<Plans>()};
                               },
                               {harness.lifting_rounds}));
  for (std::uint32_t client = 0; client < clients; ++client) harness.arrive({client});
  std::vector<Coverage> next;
  for (const auto& task : harness.all<RunEngine::Assign>()) next.push_back(task.next);
  return next;
}

}  // namespace

TEST_CASE("overlap: a task says what is trained next, if all clients take part in every round") {
  CHECK(announced<InTurn>(true, 3) == std::vector<Coverage>(3, kEven));
  CHECK(announced<InTurn>(true, 4) == std::vector<Coverage>(3));     // one of four is left out
  CHECK(announced<InTurn>(false, 3) == std::vector<Coverage>(3));    // rounds do not overlap
  CHECK(announced<InTurn>(true, 3, 1) == std::vector<Coverage>(3));  // the only round
  CHECK(announced<Whole>(true, 3) == std::vector<Coverage>(3));      // it changes what is trained next
}

}  // namespace fedge::server
