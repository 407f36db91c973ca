// Which clients a run is for: their labels (sampling.where) and their numbers.
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/live/run_watch.h"
#include "tests/unit/server/conductor/world.h"

namespace fedge::server {
namespace {

// A run for the clients with the label "ward-3".
struct LabelledWorld : RecordedWorld {
  LabelledWorld() {
    config.sampling.where = *aggregation::ClientFilter::parse("label == 'ward-3'");
    labels[ClientId(0)] = labels[ClientId(1)] = labels[ClientId(2)] = {"icu", "ward-3"};
    follower = &run_watch;
  }
  std::optional<std::vector<std::string>> labels_of(ClientId client) const override {
    if (unknown.contains(client)) return std::nullopt;
    const auto found = labels.find(client);
    return found == labels.end() ? std::vector<std::string>() : found->second;
  }
  void relabel(std::uint32_t client, std::vector<std::string> now_has) {
    labels[ClientId(client)] = std::move(now_has);
    conductor->relabelled(ClientId(client), now);
  }

  std::map<ClientId, std::vector<std::string>> labels;
  std::set<ClientId> unknown;  // whose entry was not read yet
  RunWatch run_watch;
};

}  // namespace

TEST_CASE("selection: a client without the label is never told of the run, and operators are told why") {
  LabelledWorld world;
  world.start();
  world.present.insert(ClientId(5));
  world.conductor->linked(ClientId(5), world.now);
  CHECK(world.log.empty());
  const auto standing = world.run_watch.standing(ClientId(5));
  REQUIRE(standing);
  CHECK(std::string(standing->first) == "declined");
  CHECK(standing->second.find("label == 'ward-3'") != std::string::npos);
  // It answers nevertheless, and offers an update: nothing of it counts.
  world.answer(5);
  world.offer(5);
  CHECK(world.log.empty());
  CHECK(world.journal.empty());
  world.arrive({0, 1, 2});
  CHECK(world.count("train_request to 5") == 0);
  CHECK(world.count("train_request to 2") == 1);
  // Nor does it learn that the run has ended.
  world.conductor->submit(RunEngine::Stop{"told to"}, world.now);
  CHECK(world.count("run_ended to 0") == 1);
  CHECK(world.count("run_ended to 5") == 0);
}

TEST_CASE("selection: while its labels are not known, a client is not told of a run that selects by them") {
  LabelledWorld world;
  world.config.sampling.where = *aggregation::ClientFilter::parse("label != 'test'");
  world.unknown.insert(ClientId(5));
  world.start();
  world.present.insert(ClientId(5));
  world.conductor->linked(ClientId(5), world.now);
  CHECK(world.count("run_description to 5") == 0);
  world.unknown.clear();
  CHECK(world.conductor->relabelled(ClientId(5), world.now));
  CHECK(world.count("run_description to 5") == 1);
}

TEST_CASE("selection: a task that was decided before the client lost its label is not sent, nor the model") {
  LabelledWorld world;
  world.start();
  world.arrive({0, 1});
  world.present.insert(ClientId(2));
  world.conductor->linked(ClientId(2), world.now);
  world.holds = true;
  world.answer(2);  // the round is decided, but waits for the journal
  world.relabel(1, {"icu"});
  world.open_gate();
  CHECK(world.count("train_request to 0") == 1);
  CHECK(world.count("train_request to 1") == 0);
  CHECK(world.count("give 1") == 0);
}

TEST_CASE("selection: a client that gets the label takes part at once, without connecting again") {
  LabelledWorld world;
  world.labels[ClientId(2)] = {"icu"};
  world.start();
  world.arrive({0, 1, 2});
  CHECK(world.count("train_request to 0") == 0);
  world.relabel(2, {"ward-3"});
  CHECK(world.count("run_description to 2") == 1);
  world.answer(2);
  CHECK(world.count("train_request to 2") == 1);
  // A change that does not matter changes nothing.
  world.relabel(2, {"night", "ward-3"});
  CHECK(world.count("run_description to 2") == 1);
  CHECK(world.count("run_ended to 2") == 0);
}

TEST_CASE("selection: a client that loses the label loses its task, and what it still sends does not count") {
  LabelledWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.relabel(1, {"icu"});
  CHECK(world.count("run_ended to 1") == 1);
  CHECK(world.count("input left 1") == 1);
  const std::size_t before = world.journal.size();
  world.offer(1);
  CHECK(world.journal.size() == before);
  CHECK(world.conductor->received(ClientId(1), protocol::TaskFailed{.run = kRun, .round = RoundNumber(1)},
                                  world.now) == Heard::kTaken);
  // After a reconnection, it is still not for it.
  world.leave(1);
  world.present.insert(ClientId(1));
  world.conductor->linked(ClientId(1), world.now);
  CHECK(world.count("run_description to 1") == 1);
}

TEST_CASE("selection: partitioned data is for clients below data.partition.clients only") {
  RecordedWorld world;
  world.start();
  world.arrive({0, 10});
  CHECK(world.count("client.declined") == 1);
  CHECK(world.events.back().find("places for 10 clients") != std::string::npos);
}

TEST_CASE("selection: with data of their own, clients may have any number") {
  RecordedWorld world;
  world.config.task.data.partition.kind = learn::PartitionKind::kOwn;
  world.start();
  world.arrive({0, 41, 999'999});
  CHECK(world.count("client.declined") == 0);
  CHECK(world.count("train_request to 999999") == 1);
  world.arrive({1'000'000});
  CHECK(world.count("client.declined") == 1);
}

TEST_CASE("selection: parts that count clients bind the numbers of clients with data of their own, too") {
  const auto declines = [](const std::function<void(run::RunConfig&)>& change) {
    RecordedWorld world;
    world.config.task.data.partition.kind = learn::PartitionKind::kOwn;
    change(world.config);
    world.start();
    world.arrive({0, 41});
    return world.count("client.declined") == 1;
  };
  CHECK_FALSE(declines([](run::RunConfig&) {}));
  CHECK(declines([](run::RunConfig& run) { run.strategy.planner_traits.numbers_clients = true; }));
  CHECK(declines([](run::RunConfig& run) { run.sampling.traits.independent = true; }));
  CHECK(
      declines([](run::RunConfig& run) { run.privacy.kind = run::DifferentialPrivacySpec::Kind::kCentral; }));
  CHECK(declines([](run::RunConfig& run) { run.tracks.policy.disagreements.emplace_back(); }));
  CHECK(declines([](run::RunConfig& run) { run.control_variates = true; }));
  CHECK(declines([](run::RunConfig& run) { run.strategy.sums_clients = true; }));
}

TEST_CASE("selection: a policy that counts clients is refused once a client with a higher number took part") {
  RecordedWorld world;
  world.config.task.data.partition.kind = learn::PartitionKind::kOwn;
  world.config.tracks.policy.clients = 10;
  world.harness.rules.rounds = 9;
  aggregation::Policy policy{.clients = 10};
  policy.disagreements.push_back({.kind = aggregation::DisagreementKind::kFull, .clients = {ClientId(1)}});
  world.start();
  world.arrive({0, 1, 2});
  CHECK_FALSE(world.conductor->objection(policy));
  CHECK_FALSE(world.conductor->objection(aggregation::Policy{.clients = 10}));
  SUBCASE("a client with a high number took part, and has left; also after a restart") {
    world.arrive({41});
    world.leave(41);
    world.restart();
    REQUIRE(world.conductor->objection(policy));
    CHECK(world.conductor->objection(policy)->message.find("client 41") != std::string::npos);
  }
  SUBCASE("once clients disagree, no client with a high number takes part; also after a restart") {
    world.conductor->submit(RunEngine::PolicyChanged{policy}, world.now);
    world.arrive({41});
    CHECK(world.count("client.declined") == 1);
    world.restart();
    world.arrive({41});
    CHECK(world.count("client.declined") == 1);
  }
}

}  // namespace fedge::server
