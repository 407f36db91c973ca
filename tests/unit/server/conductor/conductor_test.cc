// The order in which a conductor gives inputs to the engine and carries out its decisions.
#include "server/conductor/conductor.h"

#include <doctest/doctest.h>

#include <span>

#include "tests/unit/server/conductor/world.h"

namespace fedge::server {
namespace {

const TaskId kFirstTask{RoundNumber(1), {}};

protocol::UpdateHeld report_of(const protocol::UpdateOffer& offer) {
  return {.run = kRun, .round = offer.round, .track = offer.track, .object = offer.update.id()};
}

// Three clients begin a serverless round; each offers an update, and all report that they hold all of them.
void exchange_updates(RecordedWorld& world) {
  world.start();
  world.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U}) world.offer(client);
  for (const auto& [owner, offer] : world.offers)
    for (const std::uint32_t client : {0U, 1U, 2U})
      world.conductor->received(ClientId(client), report_of(offer), world.now);
}

protocol::Manifest clients_model(const RecordedWorld& world) {
  protocol::Manifest model = world.model;
  model.chunks = {Digest{77}};
  return model;
}

}  // namespace

TEST_CASE("conductor: a decision has no effect before its gate lets it pass") {
  RecordedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.offer(0);
  world.holds = true;
  world.conductor->uploaded(ClientId(0), kFirstTask, {}, world.now);
  CHECK(world.count("input stored") == 1);
  CHECK(world.count("fold 0") == 0);
  CHECK(world.verdicts.empty());
  world.open_gate();
  CHECK(world.count("fold 0") == 1);
  CHECK(world.verdicts.at(ClientId(0)).accepted);
}

TEST_CASE("conductor: a client that is gone before its decision is carried out gets no task") {
  RecordedWorld world;
  world.start();
  world.arrive({0, 1});
  world.present.insert(ClientId(2));
  world.holds = true;
  world.answer(2);  // the third client: the round starts
  world.present.erase(ClientId(1));
  world.open_gate();
  CHECK(world.count("train_request to 0") == 1);
  CHECK(world.count("train_request to 1") == 0);
  CHECK(world.count("give 1") == 0);
  CHECK(world.count("train_request to 2") == 1);
}

TEST_CASE("conductor: every connected client hears once that the run has ended, also one that only waits") {
  RecordedWorld world;
  world.start();
  world.arrive({0, 1, 2, 3});
  world.conductor->submit(RunEngine::Stop{"told to"}, world.now);
  for (const char* client : {"0", "1", "2", "3"})
    CHECK(world.count(std::string("run_ended to ") + client) == 1);
}

TEST_CASE("conductor: buffers that fill while a model is being made are all closed, in order") {
  RecordedWorld world;
  world.harness.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 1};
  world.harness.rules.rounds = 9;
  world.start();
  world.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U}) {
    world.offer(client);
    world.conductor->uploaded(ClientId(client), kFirstTask, {}, world.now);
  }
  CHECK(world.count("close 1") == 1);
  CHECK(world.count("close 2") == 1);
  // The second model is made before the first is durable.
  world.conductor->aggregated(world.turns[0], {}, world.now);
  world.conductor->aggregated(world.turns[1], invalid("why"), world.now);
  CHECK(std::ranges::count(world.events, "round.not_aggregated round=2 reason=\"why\"") == 1);
  world.conductor->closed(world.turns[0], true, false, world.now);
  world.conductor->closed(world.turns[1], false, false, world.now);
  CHECK(world.count("input committed") == 2);
}

TEST_CASE("conductor: only the route of a run has asked for its messages") {
  const auto heard = [](RecordedWorld::Kind kind, const protocol::Message& message) {
    RecordedWorld world(kind);
    world.start();
    world.arrive({0, 1, 2});
    return world.conductor->received(ClientId(0), message, world.now);
  };
  const protocol::UpdateHeld held{.run = kRun, .round = RoundNumber(1), .track = {}, .object = Digest{9}};
  const protocol::SecureConsent consent{};
  CHECK(heard(RecordedWorld::Kind::kDirect, held) == Heard::kUnasked);
  CHECK(heard(RecordedWorld::Kind::kDirect, consent) == Heard::kUnasked);
  CHECK(heard(RecordedWorld::Kind::kServerless, held) == Heard::kUnasked);  // nobody has offered this update
  CHECK(heard(RecordedWorld::Kind::kServerless, consent) == Heard::kUnasked);
  CHECK(heard(RecordedWorld::Kind::kSecure, held) == Heard::kUnasked);
  CHECK(heard(RecordedWorld::Kind::kSecure, consent) == Heard::kTaken);
}

TEST_CASE("conductor: the engine hears of a departure before what a secure sum makes of it") {
  RecordedWorld world(RecordedWorld::Kind::kSecure);
  world.start();
  world.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U}) world.leave(client);
  for (const char* client : {"0", "1", "2"}) {
    CHECK(world.count(std::string("input failed ") + client) > 0);
    CHECK(world.place(std::string("input left ") + client) <
          world.place(std::string("input failed ") + client));
  }
}

TEST_CASE("conductor: a client that has trained goes on to exchange the model only in a serverless run") {
  for (const auto kind : {RecordedWorld::Kind::kDirect, RecordedWorld::Kind::kServerless}) {
    RecordedWorld world(kind);
    world.start();
    world.arrive({0, 1, 2});
    world.offer(1);
    CHECK(world.count("take back 1") == (kind == RecordedWorld::Kind::kDirect ? 1 : 0));
  }
}

TEST_CASE(
    "conductor: serverless, a round is closed with the model that the clients aggregated, then verdicts go "
    "out") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  CHECK(world.count("left to clients 2") == 1);
  CHECK(world.count("aggregate_updates to 0") == 1);
  CHECK(world.closed.empty());
  const protocol::Manifest made = clients_model(world);
  for (const std::uint32_t client : {0U, 1U})
    world.conductor->received(ClientId(client), protocol::AggregateMade{kRun, RoundNumber(1), {}, made},
                              world.now);
  CHECK(world.count("fetch the clients' model") == 1);
  world.conductor->fetched(made.id(), {}, world.now);
  REQUIRE(world.closed.size() == 1);
  const auto* by_clients = std::get_if<MadeByClients>(&world.closed.front());
  REQUIRE(by_clients != nullptr);
  CHECK(by_clients->model == made.id());
  CHECK(by_clients->contributors.size() == 3);
  CHECK(world.verdicts.empty());
  world.conductor->aggregated(world.turns[0], {}, world.now);
  world.conductor->closed(world.turns[0], true, false, world.now);
  CHECK(world.verdicts.size() == 3);
  for (const auto& [client, verdict] : world.verdicts) CHECK(verdict.accepted);
}

TEST_CASE("conductor: serverless, a client that returns while the model is made takes part again") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  for (const std::uint32_t client : {0U, 1U}) world.leave(client);
  const protocol::Manifest made = clients_model(world);
  world.conductor->received(ClientId(2), protocol::AggregateMade{kRun, RoundNumber(1), {}, made}, world.now);
  CHECK(world.count("fetch the clients' model") == 0);  // one of three
  world.now += seconds(5);
  world.arrive({0});
  CHECK(world.count("aggregate_updates to 0") == 2);
  world.conductor->received(ClientId(0), protocol::AggregateMade{kRun, RoundNumber(1), {}, made}, world.now);
  CHECK(world.count("fetch the clients' model") == 1);
}

TEST_CASE("conductor: a client that is gone before its arrival is carried out does not take part again") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  world.leave(0);
  world.holds = true;
  world.arrive({0});
  world.leave(0);
  world.open_gate();
  CHECK(world.count("aggregate_updates to 0") == 1);
}

TEST_CASE("conductor: serverless, a model that does not come in time is given up once") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  const protocol::Manifest made = clients_model(world);
  for (const std::uint32_t client : {0U, 1U})
    world.conductor->received(ClientId(client), protocol::AggregateMade{kRun, RoundNumber(1), {}, made},
                              world.now);
  world.now = *world.conductor->next_deadline();
  world.conductor->expired(world.now);
  CHECK(world.count("abandon the clients' model") == 1);
  REQUIRE(world.closed.size() == 1);
  CHECK(std::holds_alternative<NotMade>(world.closed.front()));
  world.conductor->fetched(made.id(), {}, world.now);  // it comes after all
  CHECK(world.closed.size() == 1);
}

TEST_CASE("conductor: serverless, a round that a refusal ends is closed after the effects of the refusal") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  // Clients that offer an update of a closed round are refused, and do not vote any more.
  for (const std::uint32_t client : {1U, 2U}) world.offer(client);
  REQUIRE(world.closed.size() == 1);
  CHECK(std::holds_alternative<NotMade>(world.closed.front()));
  const auto before = std::span(world.log).first(world.place("close 1"));
  CHECK(std::ranges::count(before, "update.refused") == 2);
}

TEST_CASE("conductor: a run that is stopped while its model is made ends with this model") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  world.conductor->submit(RunEngine::Stop{"enough"}, world.now);
  CHECK(world.count("finished: enough") == 0);
  const protocol::Manifest made = clients_model(world);
  for (const std::uint32_t client : {0U, 1U})
    world.conductor->received(ClientId(client), protocol::AggregateMade{kRun, RoundNumber(1), {}, made},
                              world.now);
  world.conductor->fetched(made.id(), {}, world.now);
  REQUIRE(world.turns.size() == 1);
  CHECK(world.count("finished: enough") == 0);
  world.conductor->closed(world.turns[0], true, false, world.now);
  CHECK(world.count("finished: enough") == 1);
  CHECK(world.count("input committed") == 0);
}

TEST_CASE("conductor: a restart repeats the decisions of the journal, and tells nobody") {
  RecordedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.offer(0);
  world.conductor->uploaded(ClientId(0), kFirstTask, {}, world.now);
  world.now += seconds(5);
  world.restart();
  CHECK(world.retold == std::vector<std::string>{"fold 0"});
  CHECK(world.log == std::vector<std::string>{"run.resumed"});
  world.arrive({0, 1});
  CHECK(world.count("train_request to 0") == 0);  // its update is stored
  CHECK(world.count("train_request to 1") == 1);
}

TEST_CASE("conductor: after a restart, a direct phase is closed again") {
  RecordedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U}) {
    world.offer(client);
    world.conductor->uploaded(ClientId(client), kFirstTask, {}, world.now);
  }
  world.restart();
  CHECK(world.retold == std::vector<std::string>{"fold 0", "fold 1", "fold 2", "close 1"});
  CHECK(world.closed.size() == 1);  // by the first process; the second must be told of the commit
}

TEST_CASE("conductor: after a restart, the model of a serverless phase is still being made") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  world.restart();
  CHECK(world.retold.empty());
  CHECK(world.conductor->makes_model());
  world.arrive({0, 1});
  CHECK(world.count("aggregate_updates to 0") == 1);
  const protocol::Manifest made = clients_model(world);
  for (const std::uint32_t client : {0U, 1U})
    world.conductor->received(ClientId(client), protocol::AggregateMade{kRun, RoundNumber(1), {}, made},
                              world.now);
  CHECK(world.count("fetch the clients' model") == 1);
}

TEST_CASE("conductor: serverless, a client whose reports come too late is not accused") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  const protocol::AggregateMade made{kRun, RoundNumber(1), {}, clients_model(world)};
  for (const std::uint32_t client : {0U, 1U}) world.conductor->received(ClientId(client), made, world.now);
  for (const std::uint32_t client : {0U, 1U, 2U}) world.leave(client);
  world.conductor->fetched(made.model.id(), {}, world.now);
  world.conductor->closed(world.turns.at(0), true, false, world.now);
  world.kept_rounds = 1;
  for (const bool restarted : {false, true}) {
    if (restarted) world.restart();
    world.present.insert(ClientId(2));
    world.conductor->linked(ClientId(2), world.now);
    CHECK(world.conductor->received(ClientId(2), made, world.now) == Heard::kTaken);
    const auto held = report_of(world.offers.at(ClientId(0)));
    CHECK(world.conductor->received(ClientId(2), held, world.now) == Heard::kTaken);
  }
}

TEST_CASE(
    "conductor: after a restart, a client that had failed is not awaited, so a lost vote is seen at once") {
  RecordedWorld world(RecordedWorld::Kind::kServerless);
  exchange_updates(world);
  world.conductor->received(ClientId(1), protocol::TaskFailed{.run = kRun, .round = RoundNumber(1)},
                            world.now);
  world.restart();
  world.arrive({0, 2});
  protocol::Manifest made = clients_model(world);
  world.conductor->received(ClientId(0), protocol::AggregateMade{kRun, RoundNumber(1), {}, made}, world.now);
  CHECK(world.closed.empty());
  made.chunks = {Digest{78}};
  world.conductor->received(ClientId(2), protocol::AggregateMade{kRun, RoundNumber(1), {}, made}, world.now);
  REQUIRE(world.closed.size() == 1);
  CHECK(std::holds_alternative<NotMade>(world.closed.front()));
}

TEST_CASE("conductor: a planner of energy gets only clients that describe theirs") {
  RecordedWorld world;
  world.config.strategy.planner_traits.reads_power = true;
  Conductor& conductor = world.start();
  for (const std::uint32_t client : {0U, 1U}) {
    world.present.insert(ClientId(client));
    conductor.linked(ClientId(client), world.now);
    protocol::RunAnswer answer{kRun, true, SampleCount(60)};
    if (client == 1)
      answer.power = DevicePower{.hertz = {1e9},
                                 .volts = {1},
                                 .watts_lowest = 1,
                                 .watts_highest = 1,
                                 .cycles_per_flop = 1,
                                 .send_bytes_per_second = 1,
                                 .receive_bytes_per_second = 1};
    conductor.received(ClientId(client), answer, world.now);
  }
  std::vector<const RunEngine::ClientArrived*> arrived;
  for (const auto& [input, time] : world.journal)
    if (const auto* one = std::get_if<RunEngine::ClientArrived>(&input)) arrived.push_back(one);
  REQUIRE(arrived.size() == 1);
  CHECK(arrived.front()->client == ClientId(1));
  REQUIRE(arrived.front()->power);
  CHECK(arrived.front()->power->hertz == std::vector<double>{1e9});
}

}  // namespace fedge::server
