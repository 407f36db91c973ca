// Serverless runs: updates stay with the clients, which exchange and aggregate them.
#include <doctest/doctest.h>

#include "tests/integration/swarm/serverless_scene.h"

using namespace fedge;
using test::add_listening_clients;
using test::answer_all;
using test::Federation;
using test::hashes_of;
using test::HostilePeer;
using test::kServerlessClients;
using test::kServerlessModel;
using test::serverless;
using test::ServerlessScene;
using fedge::test::operator+;

namespace {

constexpr std::uint64_t kServerlessModelBytes = 4 * (784 * 64 + 64 + 64 * 10 + 10);

}  // namespace

TEST_CASE(
    "serverless: clients that aggregate themselves come to the models that the coordinator would make") {
  std::vector<std::string> more = {"run.rounds=3"};
  SUBCASE("of FedAvg") {}
  SUBCASE("of partial, compressed updates") {
    more =
        more + std::vector<std::string>{"model.hidden=[60]", "strategy.kind=fedplt", "compression.kind=int8"};
  }
  SUBCASE("of FedNova, some of the clients in each round") {
    more =
        more + std::vector<std::string>{"strategy.aggregator.kind=fednova", "sampling.clients_per_round=4"};
  }
  Federation f(kServerlessClients, serverless(more));
  add_listening_clients(f, kServerlessClients);
  f.run_to_the_end();
  CHECK(f.hashes() == hashes_of(kServerlessClients, kServerlessModel + more));
  CHECK(f.count(f.client_events, "peer.dropped") == 0);
  CHECK(f.count(f.events, "model.mismatch") == 0);
  CHECK(f.count(f.client_events, "model.aggregated round=3") == f.rounds.front().clients_completed);
  CHECK(f.count(f.events, "round.updates_exchanged") == 3);
  const std::string all = std::to_string(f.rounds.front().clients_completed);
  CHECK(f.reported("round.updates_exchanged round=3 reconstructable=" + all + " participants=" + all +
                   " refused=0 lost=0"));
  // The coordinator receives no update, and the model once.
  for (const auto& round : f.rounds) CHECK(round.bytes_up < 2 * kServerlessModelBytes);
}

TEST_CASE("serverless, invariant 8: the updates of clients that vanish count once the others have them") {
  ServerlessScene scene({});
  scene.wait_for_others();
  for (std::size_t i = 0; i < 3; ++i) scene.f.stop_client(i);
  scene.f.run_until([&] {
    return scene.f.reported("client.disconnected client=0") &&
           scene.f.reported("client.disconnected client=1") &&
           scene.f.reported("client.disconnected client=2");
  });
  // So far the round has waited for this client.
  const auto& task = *scene.hostile.task;
  scene.hostile.link->send(protocol::TaskFailed{.run = task.run, .round = task.round});
  scene.f.run_to_the_end();
  CHECK(
      scene.f.reported("round.updates_exchanged round=1 reconstructable=5 participants=2 refused=0 lost=0"));
  CHECK(scene.f.rounds.front().clients_completed == kServerlessClients - 1);
}

TEST_CASE("serverless: the update of a client that vanishes before the others have it is lost, and no more") {
  ServerlessScene scene({"run.round_deadline=4"});
  scene.hostile.link->send(scene.hostile.offer(scene.hostile.zero_update()));  // sends no chunk of it
  scene.f.run_until([&] { return scene.hostile.shared.size() == kServerlessClients; });
  scene.wait_for_others();
  scene.hostile.link->close("gone");
  scene.f.run_to_the_end();
  CHECK(
      scene.f.reported("round.updates_exchanged round=1 reconstructable=5 participants=5 refused=0 lost=1"));
}

TEST_CASE("serverless: a client that comes back with an update that was lost is told of it like the others") {
  ServerlessScene scene({"run.round_deadline=6"});
  const protocol::UpdateOffer offered = scene.hostile.offer(scene.hostile.zero_update());
  scene.hostile.link->send(offered);
  scene.f.run_until([&] { return scene.hostile.shared.size() == kServerlessClients; });
  scene.wait_for_others();
  scene.hostile.link->close("gone");
  scene.f.run_until([&] { return scene.f.reported("client.dropped round=1 client=5"); });
  scene.hostile.shared.clear();
  scene.hostile.task.reset();
  scene.hostile.greet("");
  scene.hostile.wait_for_task(1);
  scene.hostile.link->send(offered);
  scene.f.run_until([&] {
    return std::ranges::any_of(scene.hostile.shared,
                               [&](const auto& told) { return told.update == offered.update; });
  });
  scene.hostile.link->close("gone");
  scene.f.run_to_the_end();
}

TEST_CASE("serverless, A2: an update with values that may not be there is refused by those who get it") {
  ServerlessScene scene({});
  scene.offer(scene.values_of(std::numeric_limits<float>::infinity()));
  scene.f.run_until([&] { return scene.hostile.shared.size() == kServerlessClients; });
  answer_all(scene.hostile);
  scene.f.run_until([&] { return scene.hostile.verdict.has_value(); });
  CHECK_FALSE(scene.hostile.verdict->accepted);
  CHECK(scene.hostile.verdict->reason.find("is inf; the values of an update must be finite") !=
        std::string::npos);
  scene.f.run_to_the_end();
  CHECK(
      scene.f.reported("round.updates_exchanged round=1 reconstructable=5 participants=5 refused=1 lost=0"));
}

TEST_CASE("serverless, A2: who offers the round's model as its update takes it from nobody") {
  ServerlessScene scene({});
  protocol::UpdateOffer offered = scene.hostile.offer(scene.hostile.zero_update());
  offered.update = scene.hostile.task->model;
  scene.hostile.link->send(offered);
  scene.f.run_until([&] { return scene.hostile.verdict.has_value(); });
  CHECK_FALSE(scene.hostile.verdict->accepted);
  CHECK(scene.hostile.verdict->reason.find("exchange the offered object as a model") != std::string::npos);
  scene.f.run_to_the_end();
  CHECK(scene.f.rounds.front().clients_completed == kServerlessClients - 1);
}

TEST_CASE("serverless, A2: who makes another model of the same updates is named, and changes nothing") {
  ServerlessScene scene({});
  scene.offer(scene.values_of(0.25F));
  scene.f.run_until([&] { return scene.hostile.shared.size() == kServerlessClients; });
  answer_all(scene.hostile);
  scene.f.run_until([&] { return scene.hostile.order.has_value(); });
  CHECK(scene.hostile.order->parts.size() == kServerlessClients);
  protocol::AggregateMade made{.run = scene.hostile.task->run,
                               .round = RoundNumber(1),
                               .track = TrackId(0),
                               .model = scene.hostile.task->model};
  made.model.chunks.front() = Digest{1};
  scene.hostile.link->send(made);
  scene.f.run_to_the_end();
  CHECK(scene.f.reported("model.mismatch client=5 round=1"));
  // The client's update counts like any other.
  CHECK(scene.f.rounds.front().clients_completed == kServerlessClients);
}

TEST_CASE(
    "serverless, A2: a model of values that may not be there, made by most, is not taken, and the run goes "
    "on") {
  Federation f(1, serverless({"run.rounds=1"}));
  HostilePeer all(f);
  all.join(f.token());
  all.wait_for_task(1);
  all.link->send(all.offer(all.zero_update()));
  f.run_until([&] { return all.shared.size() == 1; });
  all.link->send(protocol::UpdateHeld{.run = all.task->run,
                                      .round = RoundNumber(1),
                                      .track = TrackId(0),
                                      .object = all.shared[0].update.id()});
  f.run_until([&] { return all.order.has_value(); });
  const auto values = all.zero_update();
  std::ranges::fill(values->values(), std::numeric_limits<float>::quiet_NaN());
  const protocol::Manifest model = all.offer(values).update;
  ServerlessScene::exchange(all.link, model, std::make_shared<test::VectorSource>(values, model.chunk_size));
  all.link->send(protocol::AggregateMade{all.task->run, RoundNumber(1), TrackId(0), model});
  f.run_until([&] { return std::ranges::find(all.told, model.id()) != all.told.end(); });
  ServerlessScene::offer_all(*all.link, model);
  f.run_to_the_end();
  CHECK(f.reported(
      "round.not_aggregated round=1 reason=\"the model that most clients aggregated is invalid: "));
  CHECK(f.reported("values that are not finite"));
}

TEST_CASE("serverless: a round in which nobody is selected closes at once, and counts nobody again") {
  const std::vector<std::string> rarely = {"run.rounds=8", "sampling.kind=poisson", "sampling.rate=0.4"};
  Federation f(2, serverless(rarely));
  add_listening_clients(f, 2);
  f.run_to_the_end();
  Federation direct(2, kServerlessModel + rarely);
  add_listening_clients(direct, 2);
  direct.run_to_the_end();
  CHECK(f.hashes() == direct.hashes());
  CHECK_FALSE(f.reported("round.not_aggregated"));
  REQUIRE(f.rounds.size() == 8);
  bool after_another = false;
  for (std::size_t r = 1; r < 8; ++r) {
    after_another =
        after_another || (f.rounds[r].clients_selected == 0 && f.rounds[r - 1].clients_selected > 0);
    CHECK(f.rounds[r].participation.gap == direct.rounds[r].participation.gap);
  }
  CHECK(after_another);
}

TEST_CASE("serverless, N6: who never says what it has holds the round up until it is late, and no longer") {
  ServerlessScene scene({"run.round_deadline=2"});
  scene.f.run_to_the_end();
  CHECK(scene.f.rounds.front().clients_completed == kServerlessClients - 1);
}

TEST_CASE("serverless, A1: word of an update that there is not costs its sender the link") {
  ServerlessScene scene({"run.round_deadline=2"});
  SUBCASE("that it is held") {
    scene.hostile.link->send(protocol::UpdateHeld{.run = scene.hostile.task->run, .round = RoundNumber(1)});
  }
  SUBCASE("that it is aggregated, while nobody has asked for that") {
    scene.hostile.link->send(protocol::AggregateMade{.run = scene.hostile.task->run,
                                                     .round = RoundNumber(1),
                                                     .track = TrackId(0),
                                                     .model = scene.hostile.task->model});
  }
  scene.f.run_until([&] { return scene.hostile.closed; });
  CHECK(scene.hostile.goodbye->reason.find("which the coordinator did not request") != std::string::npos);
}

TEST_CASE("serverless: a client that comes later gets the model from the others") {
  Federation f(kServerlessClients, serverless({"run.rounds=3", "run.wait_for_clients=4",
                                               "sampling.min_available=4", "sampling.clients_per_round=6"}));
  add_listening_clients(f, 4);
  f.run_until([&] { return f.rounds.size() == 1; });
  add_listening_clients(f, 2);
  f.run_to_the_end();
  CHECK(f.rounds.back().clients_completed == kServerlessClients);
  CHECK(f.count(f.events, "model.mismatch") == 0);
}
