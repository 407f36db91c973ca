#include "sim/dissemination/virtual_exchange.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <string>
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

// The ports of a client that only exchanges; counts its answers about updates.
class Answering final : public client::Coordinator,
                        public client::Work,
                        public client::Keep,
                        public client::Owner {
 public:
  void connect() override {}
  void disconnect(const std::string&) override {}
  void send(const protocol::Message& message) override {
    if (std::holds_alternative<protocol::UpdateHeld>(message)) ++answers;
  }
  PublicKey identity() const override { return {}; }
  void prepare(const protocol::RunDescription&) override {}
  void fetch(const client::ClientEngine::FetchModel&) override {}
  void train(const client::ClientEngine::Train&) override {}
  void train_ahead(const client::ClientEngine::TrainAhead&) override {}
  void abandon_ahead(RunId) override {}
  void mask(RunId, TaskId, privacy::Masking) override {}
  void abandon(RunId, TaskId) override {}
  void forget(RunId) override {}
  void publish(const client::ClientEngine::Publish&) override {}
  const SecretKey& identity() override { return key_; }
  Entropy entropy(const protocol::SecureSession&) override { return system_entropy(); }
  client::KnownClients* known_clients() override { return nullptr; }
  void write_known_clients() override {}
  client::SummedUpdates& summed_updates() override { return summed_; }
  void write_sum(const protocol::SecureSession&, const client::SummedUpdates::Record&) override {}
  void report(const Event&) override {}
  void run_ended(const std::optional<Error>&) override {}
  void revoked(const std::string&) override {}
  void finished() override {}
  void settled() override {}

  std::size_t answers = 0;

 private:
  SecretKey key_ = SecretKey::generate();
  client::SummedUpdates summed_ = client::SummedUpdates::in_memory();
};

// Two clients work on a task. The first has finished its update, and the second is told of it.
struct TwoClients {
  TwoClients() {
    model.payload_size = kChunks * 4096;
    model.chunk_size = 4096;
    model.chunks.resize(kChunks);
    request = {.run = run, .round = kTask.round, .model = model};
    for (const ClientId client : {first, second}) enter(client);
    network.run(Time(seconds(1)));
    offer = {.run = run, .round = kTask.round, .update = model};
    exchange.name(first, offer);
    exchange.watch(offer.update);
    for (const ClientId client : {first, second}) tell(client);
  }
  void enter(ClientId client) {
    swarm.give(client, kTask, model);
    const auto all = swarm::ChunkSet::full(kChunks);
    swarm.open(client, model, all, all);
    act(client, [](client::RoundUpdates& round, const auto& context) { round.begin(context); });
  }
  void tell(ClientId client) {
    exchange.admit(client, offer.update.id());
    act(client, [&](client::RoundUpdates& round, const auto& context) {
      round.take(protocol::ServerlessUpdate{run, kTask.round, kTask.track, offer.update}, client == first,
                 context);
    });
  }
  void end(ClientId client) {
    act(client, [](client::RoundUpdates& round, const auto& context) { round.end(context.ports); });
  }
  std::size_t answers(ClientId client) const { return devices.at(client.value()).answers; }

  // Acts on the client's round. Answers of the exchange wait until that is done, as in a conductor.
  using Act = std::function<void(client::RoundUpdates&, const client::RoundUpdates::Context&)>;
  void act(ClientId client, Act what) {
    waiting.emplace_back(client, std::move(what));
    if (waiting.size() > 1) return;
    for (; !waiting.empty(); waiting.pop_front()) {
      const ClientId id = waiting.front().first;
      Answering& device = devices.at(id.value());
      VirtualPeers peers(exchange, id);
      const client::Ports ports{device, device, device, device, &peers};
      waiting.front().second(rounds.at(id.value()), {ports, request});
    }
  }

  const RunId run{1};
  const ClientId first{0};
  const ClientId second{1};
  protocol::Manifest model;
  protocol::TrainRequest request;
  protocol::UpdateOffer offer;
  std::array<Answering, 2> devices;
  std::array<client::RoundUpdates, 2> rounds{client::RoundUpdates(run, kTask, "run"),
                                             client::RoundUpdates(run, kTask, "run")};
  std::deque<std::pair<ClientId, Act>> waiting;
  SlowNetwork network;
  run::DisseminationSpec spec;
  VirtualSwarm swarm{
      {.network = network,
       .spec = spec,
       .listens = [](ClientId) { return true; },
       .on_completed = [this](ClientId peer, const auto& object) { exchange.completed(peer, object); },
       .on_ended = [this](ClientId client, const auto& object) { exchange.kept(client, object); }},
      Rng(1)};
  VirtualExchange exchange{
      {.swarm = swarm,
       .network = network,
       .run = run,
       .rng = Rng(2),
       .inspect = [](ClientId, TaskId) { return Result<void>(); },
       .answer =
           [this](ClientId client, client::RoundStep step) {
             act(client, [step = std::move(step)](client::RoundUpdates& round, const auto& context) {
               round.answered(step, context);
             });
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
  clients.end(clients.second);
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
