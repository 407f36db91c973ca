// Tests which updates of a serverless round all clients can aggregate, and which model the majority has
// aggregated. The numbers of invariants refer to the list in FLTorrent's specification
// (docs/algorithms/serverless.md).
#include "server/engine/serverless_round.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace fedge;
using namespace fedge::server;

namespace {

protocol::Manifest marked_update(std::uint8_t mark) {
  protocol::Manifest manifest;
  manifest.coverage = Coverage::all(4);
  manifest.payload_size = 16;
  manifest.chunk_size = 4096;
  manifest.chunks = {Digest{mark}};
  return manifest;
}

struct Fixture {
  ServerlessRound round{TaskId{RoundNumber(1), TrackId(0)}, 3};
  bool obtainable = true;

  Fixture() {
    for (std::uint32_t client = 0; client < 3; ++client) round.join(ClientId(client));
  }
  void offer(std::uint32_t client) {
    round.offer(ClientId(client), marked_update(static_cast<std::uint8_t>(client + 1)));
  }
  bool answer(std::uint32_t client, std::uint32_t of, bool sound = true) {
    return round.answer(ClientId(client), {.object = marked_update(static_cast<std::uint8_t>(of + 1)).id(),
                                           .sound = sound,
                                           .code = ErrorCode::kInvalid,
                                           .reason = "said by " + std::to_string(client)});
  }
  // Returns decisions as "2 lost", "0 refused: why", "1 good".
  std::vector<std::string> decide(bool late = false) {
    std::vector<std::string> said;
    for (const auto& decision : round.decide(late, [this](const protocol::ObjectId&) { return obtainable; }))
      said.push_back(std::to_string(decision.client.value()) + (decision.lost ? " lost"
                                                                : decision.fault
                                                                    ? " refused: " + decision.fault->message
                                                                    : " good"));
    return said;
  }
  using Said = std::vector<std::string>;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "shared round: an update is good once everybody has it, each said once") {
  offer(0);
  CHECK(decide().empty());
  CHECK(answer(0, 0));
  CHECK(answer(1, 0));
  CHECK(decide().empty());
  CHECK(answer(2, 0));
  CHECK(decide() == Said{"0 good"});
  CHECK(decide().empty());
  CHECK_FALSE(answer(2, 0));
}

TEST_CASE_FIXTURE(Fixture, "shared round: who has offered nothing is waited for until enough have offered") {
  round.join(ClientId(3));
  for (std::uint32_t client = 0; client < 2; ++client) offer(client);
  for (std::uint32_t client = 0; client < 3; ++client) answer(client, 0);
  CHECK(decide().empty());
  offer(2);
  CHECK(decide() == Said{"0 good"});
}

TEST_CASE_FIXTURE(Fixture, "shared round: what most find unsound is refused, what few do is not") {
  offer(0);
  offer(1);
  answer(0, 0);
  answer(1, 0, false);
  answer(2, 0, false);
  answer(0, 1);
  answer(1, 1);
  answer(2, 1, false);
  CHECK(decide() == Said{"0 refused: 2 of 3 clients report that the update is invalid: said by 1", "1 good"});
  // The refused update is no longer part of the round.
  CHECK(round.updates().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "shared round: half of the clients that find an update unsound are no veto") {
  round.join(ClientId(3));
  for (std::uint32_t client = 0; client < 4; ++client) offer(client);
  answer(0, 0);
  answer(1, 0);
  answer(2, 0, false);
  SUBCASE("when all have answered it counts") {
    answer(3, 0, false);
    CHECK(decide() == Said{"0 good"});
  }
  SUBCASE("when it is late and half of them find it sound, nothing is said of it, and nobody is accused") {
    CHECK(decide(true).empty());
    CHECK(round.undecided(ClientId(0)));
  }
  SUBCASE("when it is late and more than half of them find it sound it counts") {
    answer(3, 0);
    CHECK(decide(true) == Said{"0 good"});
  }
}

TEST_CASE_FIXTURE(Fixture, "shared round: an update that few have looked at when it is late is not refused") {
  offer(0);
  answer(1, 0, false);
  CHECK(decide(true).empty());
  answer(2, 0, false);
  CHECK(decide(true) == Said{"0 refused: 2 of 3 clients report that the update is invalid: said by 1"});
}

TEST_CASE_FIXTURE(
    Fixture, "shared round: when it is late, what most have is good, and the others are not waited for") {
  offer(0);
  answer(0, 0);
  CHECK(decide(true).empty());
  answer(1, 0);
  CHECK(decide().empty());
  CHECK(decide(true) == Said{"0 good"});
}

TEST_CASE_FIXTURE(Fixture,
                  "shared round, invariant 8: who vanishes leaves its update to those who hold all of it "
                  "between them") {
  offer(2);
  answer(2, 2);
  round.leave(ClientId(2));
  CHECK(decide().empty());
  SUBCASE("and they come to have it") {
    answer(0, 2);
    answer(1, 2);
    CHECK(decide() == Said{"2 good"});
  }
  SUBCASE("or not") {
    obtainable = false;
    CHECK(decide() == Said{"2 lost"});
    CHECK(round.updates().empty());
  }
  SUBCASE("or not, and its client comes back with it") {
    obtainable = false;
    CHECK(decide() == Said{"2 lost"});
    CHECK(answer(0, 2));
    round.join(ClientId(2));
    offer(2);
    answer(1, 2);
    CHECK(decide().empty());
    answer(2, 2);
    CHECK(decide() == Said{"2 good"});
  }
  SUBCASE("also if all had it before it could be said") {
    answer(0, 2);
    answer(1, 2);
    obtainable = false;
    CHECK(decide() == Said{"2 good"});
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "shared round: two clients with the same update have one object, and each counts") {
  offer(0);
  round.offer(ClientId(1), marked_update(1));
  CHECK(round.updates().size() == 1);
  for (std::uint32_t client = 0; client < 3; ++client) answer(client, 0);
  CHECK(decide() == Said{"0 good", "1 good"});
  round.fold({.client = ClientId(1), .weight = SampleCount(5)});
  round.fold({.client = ClientId(0), .weight = SampleCount(7)});
  const auto order = round.order(RunId(9));
  REQUIRE(order.parts.size() == 2);
  CHECK(order.parts[0].object == order.parts[1].object);
  CHECK(order.parts[0].weight == SampleCount(5));
}

TEST_CASE_FIXTURE(Fixture, "shared round: what is to be aggregated does not tell whose it is") {
  for (std::uint32_t client = 0; client < 3; ++client) {
    offer(client);
    round.fold({.client = ClientId(client), .weight = SampleCount(1)});
  }
  const auto order = round.order(RunId(9));
  CHECK(std::ranges::is_sorted(order.parts, {}, &protocol::AggregateUpdates::Part::object));
}

struct ClosedRound : Fixture {
  ClosedRound() { round.close(); }
  bool made(std::uint32_t client, std::uint8_t model) {
    return round.made(ClientId(client), marked_update(model));
  }
};

TEST_CASE_FIXTURE(ClosedRound, "shared round: the model is that of more than half of all participants") {
  CHECK(round.model() == nullptr);
  CHECK(made(2, 7));
  CHECK_FALSE(made(2, 7));
  CHECK_FALSE(made(9, 7));  // takes no part in the round
  CHECK(round.model() == nullptr);
  CHECK(made(1, 8));
  CHECK(round.model() == nullptr);
  CHECK_FALSE(round.hopeless());
  CHECK(made(0, 8));
  CHECK(*round.model() == marked_update(8));
  CHECK(round.dissenters(marked_update(8).id()) == std::vector{ClientId(2)});
}

TEST_CASE_FIXTURE(ClosedRound,
                  "shared round: where no model is that of more than half nobody waits for one, and none is "
                  "taken") {
  for (std::uint32_t client = 0; client < 3; ++client)
    CHECK(made(client, static_cast<std::uint8_t>(client + 1)));
  CHECK(round.model() == nullptr);
  CHECK(round.hopeless());
  CHECK(round.no_model(false).message ==
        "no model was aggregated by more than half of the 3 clients of the round; the largest group that "
        "aggregated the same model has 1 clients");
}

TEST_CASE("shared round: half of the clients do not make the model, whichever object has the smaller name") {
  ServerlessRound round(TaskId{RoundNumber(1), TrackId(0)}, 2);
  for (std::uint32_t client = 0; client < 2; ++client) round.join(ClientId(client));
  round.close();
  for (const std::uint32_t hostile : {0U, 1U}) {
    CAPTURE(hostile);
    ServerlessRound each = round;
    CHECK(each.made(ClientId(hostile), marked_update(0)));
    CHECK(each.model() == nullptr);
    CHECK_FALSE(each.hopeless());
    CHECK(each.made(ClientId(1 - hostile), marked_update(9)));
    CHECK(each.model() == nullptr);
    CHECK(each.hopeless());
  }
}

TEST_CASE_FIXTURE(ClosedRound, "shared round: who goes while the model is made still counts among all") {
  SUBCASE("expected back") {
    round.expect(ClientId(0));
    round.expect(ClientId(1));
  }
  SUBCASE("or for good") {
    round.give_up(ClientId(0));
    round.give_up(ClientId(1));
  }
  CHECK(made(2, 7));
  CHECK(round.model() == nullptr);
}

TEST_CASE_FIXTURE(Fixture,
                  "shared round: after a restart of the coordinator all may come back, and nobody is there") {
  offer(0);
  round.settle(ClientId(0));
  round.restart();
  CHECK(round.participants().empty());
  CHECK(decide().empty());
  CHECK(round.expects(ClientId(1)));
  round.close();
  CHECK_FALSE(round.hopeless());
  for (std::uint32_t client = 0; client < 3; ++client) round.join(ClientId(client));
  CHECK_FALSE(round.expects(ClientId(1)));
  for (std::uint32_t client = 0; client < 3; ++client) round.leave(ClientId(client));
  CHECK(round.hopeless());
}

TEST_CASE_FIXTURE(
    Fixture,
    "shared round: after a restart the first client that is back decides neither on the model nor "
    "on an update") {
  offer(0);
  offer(1);
  round.restart();
  round.join(ClientId(0));
  SUBCASE("while updates are exchanged, nor is one that is elsewhere lost") {
    obtainable = false;
    answer(0, 0);
    answer(0, 1, false);
    CHECK(decide().empty());
    CHECK(decide(true).empty());
    round.give_up(ClientId(1));
    round.give_up(ClientId(2));
    CHECK(decide() ==
          Said{"0 good", "1 refused: 1 of 1 clients report that the update is invalid: said by 0"});
  }
  SUBCASE("while the model is made") {
    round.close();
    CHECK(round.made(ClientId(0), marked_update(7)));
    CHECK(round.model() == nullptr);
    round.join(ClientId(1));
    CHECK(round.made(ClientId(1), marked_update(7)));
    CHECK(*round.model() == marked_update(7));
  }
}

TEST_CASE_FIXTURE(Fixture, "shared round: who loses another task than the round's keeps its part") {
  const RoundNumber former(0);
  const protocol::UpdateVerdict refused{.round = RoundNumber(1), .accepted = false};
  CHECK(round.dismisses(refused));
  CHECK_FALSE(round.dismisses(protocol::UpdateVerdict{.round = RoundNumber(1), .accepted = true}));
  CHECK_FALSE(round.dismisses(protocol::UpdateVerdict{.round = former, .accepted = false}));
  CHECK(round.dismisses(protocol::CancelTask{.round = RoundNumber(1)}));
  CHECK_FALSE(round.dismisses(protocol::CancelTask{.round = former}));
  CHECK(round.dismisses(protocol::TaskFailed{.round = RoundNumber(1)}));
  CHECK_FALSE(round.dismisses(protocol::TaskFailed{.round = former}));
}
