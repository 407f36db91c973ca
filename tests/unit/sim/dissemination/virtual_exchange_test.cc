#include "sim/dissemination/virtual_exchange.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/event_queue.h"

namespace fedge::sim {
namespace {

constexpr TaskId kTask{RoundNumber(1), TrackId(0)};
constexpr std::size_t kChunks = 20;

// A network without latency; a chunk takes a second of the sender's line.
class SlowNetwork final : public swarm::VirtualLinks::Network {
 public:
  using Happening = swarm::VirtualLinks::Happening;
  Time now() const override { return now_; }
  void at(Time when, Happening what) override { queue_.push(when, std::move(what)); }
  Duration latency(ClientId, ClientId) const override { return {}; }
  void chunk(ClientId from, ClientId to, std::size_t, Happening sent, Happening arrived) override {
    Time& free = free_[from];
    free = std::max(free, now_) + seconds(1);
    ++chunks[to];
    at(free, std::move(sent));
    at(free, std::move(arrived));
  }
  void run(Time until) {
    while (!queue_.empty() && queue_.next().at <= until) {
      auto next = queue_.pop();
      now_ = next.at;
      next.payload();
    }
    now_ = until;
  }
  std::map<ClientId, std::size_t> chunks;  // sent to each

 private:
  EventQueue<Happening> queue_;
  std::map<ClientId, Time> free_;
  Time now_{};
};

// Two clients work on a task. The first has finished its update, and the second is told of it.
struct TwoClients {
  TwoClients() {
    model.payload_size = kChunks * 4096;
    model.chunk_size = 4096;
    model.chunks.resize(kChunks);
    for (const ClientId client : {first, second}) enter(client);
    network.run(Time(seconds(1)));
    offer = {.run = run, .round = kTask.round, .update = model};
    exchange.name(first, offer);
    exchange.watch(offer.update);
    for (const ClientId client : {first, second}) tell(client);
  }
  void enter(ClientId client) {
    swarm.give(client, kTask, model);
    exchange.hear(client, protocol::TrainRequest{.run = run, .round = kTask.round, .model = model});
    const auto all = swarm::ChunkSet::full(kChunks);
    swarm.open(client, model, all, all);
  }
  void tell(ClientId client) {
    exchange.admit(client, offer.update.id());
    exchange.hear(client, protocol::ServerlessUpdate{run, kTask.round, kTask.track, offer.update});
  }
  std::size_t answers(ClientId client) const {
    return static_cast<std::size_t>(std::ranges::count(answered, client));
  }

  const RunId run{1};
  const ClientId first{0};
  const ClientId second{1};
  protocol::Manifest model;
  protocol::UpdateOffer offer;
  std::vector<ClientId> answered;
  SlowNetwork network;
  run::DisseminationSpec spec;
  VirtualSwarm swarm{
      {.network = network,
       .spec = spec,
       .listens = [](ClientId) { return true; },
       .on_completed = [this](ClientId peer, const auto& object) { exchange.completed(peer, object); },
       .on_ended = [this](ClientId client, const auto& object) { exchange.kept(client, object); }},
      Rng(1)};
  VirtualExchange exchange{{.swarm = swarm,
                            .network = network,
                            .run = run,
                            .rng = Rng(2),
                            .inspect = [](ClientId, TaskId) { return Result<void>(); },
                            .send =
                                [this](ClientId client, const protocol::Message& message) {
                                  if (std::holds_alternative<protocol::UpdateHeld>(message))
                                    answered.push_back(client);
                                },
                            .on_fetched = [](const protocol::ObjectId&) {}}};
};

}  // namespace

TEST_CASE("virtual exchange: a client answers once it has an update") {
  TwoClients clients;
  clients.network.run(Time(seconds(60)));
  CHECK(clients.answers(clients.first) == 1);
  CHECK(clients.answers(clients.second) == 1);
  CHECK(clients.network.chunks[clients.second] == kChunks);
}

TEST_CASE("virtual exchange: a client whose task has ended exchanges no update any more") {
  TwoClients clients;
  clients.network.run(Time(seconds(8)));
  const std::size_t before = clients.network.chunks[clients.second];
  REQUIRE(before > 2);
  REQUIRE(before < kChunks / 2);
  clients.exchange.end(clients.second, kTask);
  clients.network.run(Time(seconds(60)));
  CHECK(clients.network.chunks[clients.second] == before);
  CHECK(clients.answers(clients.second) == 0);
}

TEST_CASE("virtual exchange: a client that reconnects fetches only what it lacks of an update, and answers") {
  TwoClients clients;
  clients.network.run(Time(seconds(8)));
  const std::size_t before = clients.network.chunks[clients.second];
  REQUIRE(before > 2);
  clients.swarm.gone(clients.second);
  clients.network.run(Time(seconds(20)));
  clients.enter(clients.second);
  clients.tell(clients.second);
  clients.network.run(Time(seconds(90)));
  CHECK(clients.answers(clients.second) == 1);
  // Chunks that were on their way are sent again.
  CHECK(clients.network.chunks[clients.second] >= kChunks);
  CHECK(clients.network.chunks[clients.second] < kChunks + before);
}

}  // namespace fedge::sim
