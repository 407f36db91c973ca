// Scripts in which the coordinator and the simulator once came to different ends, each played in both shells.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/property/sim/shells/two_shells.h"

namespace fedge::server::shells {
namespace {

using Ids = std::vector<ClientId>;

class PinnedRun {
 public:
  explicit PinnedRun(const std::vector<std::string>& settings)
      : scene_((test::write_tiny_dataset(data_), data_.path()), settings),
        shells(scene_, directory_.path(), Rng(1)) {}

  const Observed& seen() const { return shells.daemon().seen; }
  std::ptrdiff_t count(const std::string& event) const {
    return std::ranges::count_if(seen().events,
                                 [&](const std::string& line) { return line.starts_with(event); });
  }
  // Both shells have done the same so far.
  void compare() const {
    REQUIRE(shells.difference() == "");
    REQUIRE(shells.ask_the_same());
  }

  void arrive(const Ids& clients) {
    for (const ClientId client : clients) {
      shells.link(client);
      shells.answer(client, true, 7);
      compare();
    }
  }
  void leave(const Ids& clients) {
    for (const ClientId client : clients) shells.leave(client, false);
    compare();
  }
  Ids selected() {
    Ids clients;
    for (std::uint32_t i = 0; i < scene_.config.task.data.partition.clients; ++i)
      if (shells.puppet(ClientId(i)).task) clients.push_back(ClientId(i));
    return clients;
  }
  // These clients offer updates; each gets all of them and reports them.
  void exchange_updates(const Ids& clients) {
    for (const ClientId client : clients) {
      shells.offer(client, true);
      announce(client, shells.puppet(client).offered);
    }
    for (const ClientId client : clients)
      for (const auto& [id, reported] : std::map(shells.puppet(client).part().told)) {
        const protocol::TrainRequest& task = *shells.puppet(client).part().request;
        announce(client, shells.updates().at(id));
        shells.tell(client, protocol::UpdateHeld{
                                .run = task.run, .round = task.round, .track = task.track, .object = id});
      }
    compare();
  }
  // The client aggregates as the coordinator ordered.
  void aggregate(ClientId client) {
    ServerlessPart& part = shells.puppet(client).part();
    REQUIRE(part.order);
    part.made = part.aggregate(shells.model(part.request->model.id()), shells.updates());
    announce(client, part.made);
    vote(client, part.made);
  }
  void vote(ClientId client, const ServerlessPart::Object& model) {
    const protocol::TrainRequest& task = *shells.puppet(client).part().request;
    shells.tell(client,
                protocol::AggregateMade{
                    .run = task.run, .round = task.round, .track = task.track, .model = model->manifest()});
    compare();
  }
  // The clients answer what the coordinator has requested.
  void serve(const Ids& clients) {
    for (const ClientId client : clients)
      if (const auto made = shells.puppet(client).part().made)
        shells.answer_requests(client, *made, std::nullopt);
    compare();
  }

 private:
  void announce(ClientId client, const ServerlessPart::Object& object) {
    shells.announce(client, {object, swarm::ChunkSet::full(object->manifest().chunk_count())});
  }

  test::TemporaryDirectory data_;
  test::TemporaryDirectory directory_;
  Scene scene_;

 public:
  TwoShells shells;
};

std::vector<std::string> serverless_with(std::vector<std::string> settings) {
  settings.insert(settings.begin(),
                  {"dissemination.kind=serverless", "run.round_deadline=30", "run.return_within=10"});
  return settings;
}

const Ids kThree = {ClientId(0), ClientId(1), ClientId(2)};

}  // namespace

TEST_CASE("pinned scripts: clients that are away for 5 s while their model is fetched still deliver it") {
  PinnedRun run(serverless_with({"sampling.clients_per_round=2", "run.wait_for_clients=3"}));
  run.arrive(kThree);
  const Ids selected = run.selected();
  REQUIRE(selected.size() == 2);
  run.exchange_updates(selected);
  for (const ClientId client : selected) run.aggregate(client);
  REQUIRE(!run.seen().asked.empty());
  run.leave(selected);
  run.shells.pass(seconds(5));
  run.compare();
  run.arrive(selected);
  for (const ClientId client : selected) run.vote(client, run.shells.puppet(client).part().made);
  run.serve(selected);
  CHECK(run.seen().rounds.size() == 1);
  CHECK(run.count("round.not_aggregated") == 0);
}

TEST_CASE("pinned scripts: a model that arrives after its round's deadline is not taken") {
  PinnedRun run(serverless_with({"sampling.clients_per_round=3", "run.wait_for_clients=3", "run.rounds=2"}));
  run.arrive(kThree);
  run.exchange_updates(kThree);
  for (const ClientId client : kThree) run.aggregate(client);
  run.shells.pass(seconds(30));
  run.compare();
  CHECK(run.count("round.not_aggregated") == 1);
  CHECK(run.seen().rounds.size() == 1);
  run.serve(kThree);
  CHECK(run.seen().rounds.size() == 1);
  run.exchange_updates(kThree);
  for (const ClientId client : kThree) run.aggregate(client);
  run.serve(kThree);
  CHECK(run.seen().over);
  CHECK(run.count("round.not_aggregated") == 1);
}

TEST_CASE("pinned scripts: a serverless round in which nobody is selected closes at once") {
  PinnedRun run(serverless_with(
      {"sampling.kind=poisson", "sampling.rate=0.000001", "run.rounds=2", "run.wait_for_clients=3"}));
  run.arrive(kThree);
  CHECK(run.seen().over);
  CHECK(run.count("round.closed") == 2);
}

TEST_CASE("pinned scripts: a round of secure aggregation in which nobody is selected closes at once") {
  PinnedRun run({"secure_aggregation.kind=exact", "secure_aggregation.min_clients=2", "run.rounds=2",
                 "sampling.kind=poisson", "sampling.rate=0.000001", "sampling.clients_per_round=2",
                 "run.wait_for_clients=3"});
  run.arrive(kThree);
  CHECK(run.seen().over);
  CHECK(run.count("round.closed") == 2);
}

TEST_CASE("pinned scripts: the engine hears that a client left before it hears that its session failed") {
  PinnedRun run({"secure_aggregation.kind=exact", "secure_aggregation.min_clients=2", "sampling.kind=psp",
                 "sampling.clients_per_round=3", "run.wait_for_clients=3"});
  run.arrive(kThree);
  REQUIRE(run.selected() == kThree);
  for (const ClientId client : {ClientId(0), ClientId(1)})
    for (auto& outbox = run.shells.puppet(client).outbox; !outbox.empty();) {
      const protocol::Message message = outbox.front();
      outbox.pop_front();
      run.shells.tell(client, message);
    }
  run.compare();
  run.leave({ClientId(2)});
  std::vector<std::string> dropped;
  for (const std::string& event : run.seen().events)
    if (event.starts_with("client.dropped round=1 client=2")) dropped.push_back(event);
  REQUIRE(dropped.size() == 2);
  CHECK(dropped.front().ends_with("reason=\"connection lost\""));
}

TEST_CASE("pinned scripts: a crash does not change which updates the clients were told to aggregate") {
  PinnedRun run(serverless_with({"sampling.clients_per_round=3", "run.wait_for_clients=3"}));
  run.arrive(kThree);
  const Ids two = {ClientId(0), ClientId(1)};
  run.exchange_updates(two);
  run.shells.pass(seconds(27));  // two of three reports are enough from now on
  run.shells.pass(seconds(3));   // the round's deadline
  const ServerlessPart& part = run.shells.puppet(ClientId(0)).part();
  REQUIRE(part.order);
  const auto told = part.order->parts;
  run.shells.restart({.entries = run.shells.daemon().disk().promised()});
  run.compare();
  run.arrive(two);
  REQUIRE(part.order);
  CHECK(part.order->parts == told);
}

TEST_CASE("pinned scripts: after a restart, clients that were dismissed do not vote on the model") {
  PinnedRun run(serverless_with({"sampling.clients_per_round=3", "run.wait_for_clients=3"}));
  run.arrive(kThree);
  const protocol::TrainRequest task = *run.shells.puppet(ClientId(2)).task;
  run.shells.tell(
      ClientId(2),
      protocol::TaskFailed{.run = task.run, .round = task.round, .reason = "no", .track = task.track});
  const Ids others = {ClientId(0), ClientId(1)};
  run.exchange_updates(others);
  run.shells.restart({.entries = run.shells.daemon().disk().written().journal.size()});
  run.compare();
  run.arrive(others);
  run.aggregate(ClientId(0));
  ServerlessPart& part = run.shells.puppet(ClientId(1)).part();
  REQUIRE(part.order);
  run.vote(ClientId(1), part.other_model());
  // Both voters have voted, so the round need not wait.
  CHECK(run.count("round.not_aggregated") == 1);
  CHECK(run.seen().rounds.size() == 1);
}

}  // namespace fedge::server::shells
