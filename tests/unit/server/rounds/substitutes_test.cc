// These tests check which client takes the place of one that a round has lost.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/server/engine_harness.h"

using namespace fedge;
using namespace fedge::server;

namespace {

std::vector<ClientId> given_work(const Harness& harness) {
  std::vector<ClientId> clients;
  for (const auto& work : harness.all<RunEngine::Assign>()) clients.push_back(work.client);
  std::ranges::sort(clients);
  return clients;
}

}  // namespace

TEST_CASE("substitute: in every round the one idle client, whatever it did before") {
  Harness h;
  h.rules.rounds = 20;
  h.rules.first_round_clients = 4;
  h.arrive({0, 1, 2, 3});
  for (std::uint32_t round = 1; round <= 20; ++round) {
    CAPTURE(round);
    std::vector<ClientId> working = given_work(h);
    REQUIRE(working.size() == 3);
    const ClientId lost = working[round % 3];
    std::uint32_t idle = 0;
    while (std::ranges::find(working, ClientId(idle)) != working.end()) ++idle;
    h.feed(RunEngine::ClientLeft{lost});
    CHECK(given_work(h) == std::vector<ClientId>{ClientId(idle)});
    h.arrive({lost.value()});
    std::erase(working, lost);
    working.push_back(ClientId(idle));
    for (const ClientId client : working) h.deliver(client.value(), round);
    REQUIRE(h.one<RunEngine::CloseRound>());
    h.feed(RunEngine::Committed{RoundNumber(round)});
  }
  CHECK(h.one<RunEngine::Finished>());
}

TEST_CASE("substitute: not a client that has taken part as often as it may") {
  Harness h;
  h.rules.clients_per_round = 2;
  h.rules.first_round_clients = 4;
  h.rules.max_participations = 1;
  h.arrive({0, 1, 2, 3});
  const std::vector<ClientId> first = given_work(h);
  REQUIRE(first.size() == 2);
  for (const ClientId client : first) h.deliver(client.value(), 1);
  h.feed(RunEngine::Committed{RoundNumber(1)});
  const std::vector<ClientId> second = given_work(h);
  REQUIRE(second.size() == 2);
  for (const ClientId client : first) CHECK(std::ranges::find(second, client) == second.end());
  h.feed(RunEngine::ClientLeft{second[0]});
  CHECK(given_work(h).empty());
  h.arrive({4});  // may take part
  CHECK(given_work(h) == std::vector<ClientId>{ClientId(4)});
}

TEST_CASE("substitute: only a member of the track, however many others are idle") {
  Harness h;
  h.rules.rounds = 20;
  h.rules.first_round_clients = 9;
  const std::vector<ClientId> withdrawn{ClientId(1), ClientId(3), ClientId(4), ClientId(8)};
  h.policy.disagreements.push_back(
      {.kind = aggregation::DisagreementKind::kFull, .clients = withdrawn, .until_round = {}});
  h.arrive({0, 1, 2, 3, 4, 5, 6, 7, 8});
  for (std::uint32_t round = 1; round <= 20; ++round) {
    CAPTURE(round);
    std::vector<ClientId> working = given_work(h);
    REQUIRE(working.size() == 3);
    const ClientId lost = working.back();
    h.feed(RunEngine::ClientLeft{lost});
    const std::vector<ClientId> substitute = given_work(h);
    REQUIRE(substitute.size() == 1);
    CHECK(std::ranges::find(withdrawn, substitute.front()) == withdrawn.end());
    h.arrive({lost.value()});
    working.back() = substitute.front();
    for (const ClientId client : working) h.deliver(client.value(), round);
    h.feed(RunEngine::Committed{RoundNumber(round)});
  }
}
