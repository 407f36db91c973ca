// The conductor of a client with all its ports in memory: three clients in a secure sum, and what each may
// tell the coordinator at which moment.
#include "client/conductor/task_conductor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "privacy/secure_aggregation/server.h"

namespace fedge::client {
namespace {

constexpr RunId kRun(7);
constexpr std::size_t kParameters = 8;

// A client whose ports answer within their calls, except where a test says otherwise.
class Device final : public Coordinator, public Work, public Keep, public Owner, public Peers {
 public:
  explicit Device(ClientId client, bool masks = true) : masked(masks), conductor_(client) {
    step(ClientEngine::Start{});
    step(ClientEngine::Received{
        protocol::RunDescription{.run = kRun, .name = "masked", .seed = 1, .task = "", .layout = {}}});
  }
  void step(TaskConductor::Input input) {
    conductor_.step(std::move(input), {Time(), rng_, {*this, *this, *this, *this, this}});
  }
  const ClientEngine& engine() const { return conductor_.engine(); }
  template <class M>
  std::ptrdiff_t count() const {
    return std::ranges::count_if(said,
                                 [](const auto& message) { return std::holds_alternative<M>(message); });
  }
  bool reported(const std::string& name) const {
    return std::ranges::any_of(events, [&](const Event& event) { return event.name == name; });
  }
  // Answers for the sum whose record waits for the disk.
  void written(const Result<void>& outcome) {
    REQUIRE(unwritten.has_value());
    step(TaskConductor::SumWritten{*std::exchange(unwritten, std::nullopt), outcome});
  }

  void connect() override { step(ClientEngine::Connected{{.software = "", .client = {}, .runs = {kRun}}}); }
  void disconnect(const std::string&) override {}
  void send(const protocol::Message& message) override { said.push_back(message); }
  PublicKey identity() const override { return {}; }

  void prepare(const protocol::RunDescription&) override {
    const auto terms =
        std::make_shared<const MaskedRun>(MaskedRun{.name = "masked", .parameters = kParameters});
    if (masked) return step(TaskConductor::Prepared{"masked", terms, false, {.run = kRun, .masked = true}});
    step(TaskConductor::Prepared{"serverless", nullptr, true, {.run = kRun}});
  }
  void fetch(const ClientEngine::FetchModel& fetch) override {
    step(ClientEngine::ModelFetched{fetch.run, fetch.task});
  }
  void train(const ClientEngine::Train& training) override {
    if (masked) return step(TaskConductor::TrainedUnmasked{training.run, training.task, update});
    step(ClientEngine::Trained{
        training.run, training.task, {.run = training.run, .round = training.task.round}});
  }
  void train_ahead(const ClientEngine::TrainAhead&) override {}
  void abandon_ahead(RunId) override {}
  void mask(RunId run, TaskId task, privacy::Masking masking) override {
    CHECK(masking.coverage().count() == kParameters);
    step(ClientEngine::Trained{run, task, {.run = run, .round = task.round, .track = task.track}});
  }
  void abandon(RunId, TaskId) override {}
  void forget(RunId) override {}
  void publish(const ClientEngine::Publish&) override {}

  const SecretKey& identity() override { return key_; }
  Entropy entropy(const protocol::SecureSession&) override { return system_entropy(); }
  KnownClients* known_clients() override { return nullptr; }
  void write_known_clients() override {}
  SummedUpdates& summed_updates() override { return summed_; }
  void write_sum(const protocol::SecureSession& session, const SummedUpdates::Record&) override {
    unwritten = session;
    if (!slow_disk) written({});
  }

  void hold_model(const protocol::TrainRequest&) override {}
  void place(RunId run, TaskId task, const protocol::Manifest& object) override {
    step(RoundStep{run, task, RoundStep::Placed{object.id(), {}}});
  }
  void open(RunId run, const protocol::ObjectId& object, const protocol::ObjectId&, bool) override {
    if (arrives) step(RoundStep{run, {RoundNumber(1), TrackId()}, RoundStep::Arrived{object, {}}});
  }
  void close(RunId, const protocol::ObjectId&) override {}
  void examine(RunId run, TaskId task, const protocol::ObjectId& object) override {
    const Result<void> outcome = object == unsound ? invalid("not finite") : Result<void>();
    step(RoundStep{run, task, RoundStep::Examined{object, outcome}});
  }
  void make(const protocol::TrainRequest& request, const protocol::AggregateUpdates& order) override {
    made.push_back(order);
    if (!slow_disk) answer_made(request.task());
  }
  void begin_warmup(RunId, const protocol::WarmupPlan&, const protocol::ObjectId&) override {}
  void carry_out(const protocol::ObjectId&, const protocol::WarmupSlot&) override {}
  void end_warmup(const protocol::ObjectId&, const protocol::ObjectId&) override {}
  void audit(RunId, const protocol::WarmupPlan&, std::uint64_t) override {}
  void end(RunId, TaskId) override { ++rounds_ended; }
  // The model of the last make() is ready.
  void answer_made(TaskId task) {
    step(RoundStep{kRun, task, RoundStep::Made{object(static_cast<std::uint32_t>(100 + made.size()))}});
  }
  // An object with its own id.
  static protocol::Manifest object(std::uint32_t number) { return {.payload_size = number}; }

  void report(const Event& event) override { events.push_back(event); }
  void run_ended(const std::optional<Error>&) override { ++ended; }
  void revoked(const std::string&) override {}
  void finished() override {}
  void settled() override { ++settlements; }

  bool masked;  // the run masks its updates; otherwise it is serverless
  bool slow_disk = false;
  bool arrives = true;  // what other clients exchange
  std::vector<protocol::AggregateUpdates> made;
  int rounds_ended = 0;
  protocol::ObjectId unsound{};  // an update
  Digest update{};               // of the trained values
  std::optional<protocol::SecureSession> unwritten;
  std::vector<protocol::Message> said;
  std::vector<Event> events;
  int ended = 0;
  int settlements = 0;

 private:
  TaskConductor conductor_;
  SecretKey key_ = SecretKey::generate();
  SummedUpdates summed_ = SummedUpdates::in_memory();
  Rng rng_{1};
};

// Three devices and the coordinator's side of one attempt at a round's sum.
class Attempt {
 public:
  Attempt(std::deque<Device>& devices, std::uint32_t round, std::uint32_t attempt)
      : devices_(devices), session_{kRun, RoundNumber(round), TrackId(), attempt} {
    const Coverage all = Coverage::all(kParameters);
    std::vector<privacy::SecureServer::Member> members;
    for (std::uint32_t i = 0; i < devices.size(); ++i)
      members.push_back({ClientId(i), devices[i].identity().public_key(), all});
    server_.emplace(privacy::SecureServer::Terms{.session = session_, .model = model_.id()}, members, Time());
    for (Device& device : devices) heard_.push_back(device.said.size());
    for (Device& device : devices) device.step(ClientEngine::Received{request()});
    pass_on();
  }
  protocol::TrainRequest request() const {
    protocol::TrainRequest request{
        .run = kRun, .round = session_.round, .model = model_, .coverage = Coverage::all(kParameters)};
    request.secure_attempt = session_.attempt;
    return request;
  }
  // The coordinator has all masked updates, and asks for what removes the masks of their sum.
  void sum() {
    step([&](auto& effects) {
      server_->summed(std::array{ClientId(0), ClientId(1), ClientId(2)}, Time(), effects);
    });
    pass_on();
  }

 private:
  template <class Act>
  void step(const Act& act) {
    std::vector<privacy::SecureServer::Effect> effects;
    act(effects);
    for (const auto& effect : effects)
      if (const auto* send = std::get_if<privacy::SecureServer::Send>(&effect))
        std::visit(
            [&](const auto& message) {
              devices_[send->client.value()].step(ClientEngine::Received{message});
            },
            send->message);
  }
  // Gives the server what the devices have said, until nobody says anything any more.
  void pass_on() {
    for (bool more = true; more;) {
      more = false;
      for (std::uint32_t i = 0; i < devices_.size(); ++i)
        for (; heard_[i] < devices_[i].said.size(); more = true) {
          const protocol::Message message = devices_[i].said[heard_[i]++];
          step([&](auto& effects) {
            if (const auto* m = std::get_if<protocol::SecureKeys>(&message))
              server_->receive(ClientId(i), *m, Time(), effects);
            if (const auto* m = std::get_if<protocol::SecureShares>(&message))
              server_->receive(ClientId(i), *m, Time(), effects);
            if (const auto* m = std::get_if<protocol::SecureConsent>(&message))
              server_->receive(ClientId(i), *m, Time(), effects);
          });
        }
    }
  }

  std::deque<Device>& devices_;
  protocol::SecureSession session_;
  protocol::Manifest model_;
  std::optional<privacy::SecureServer> server_;
  std::vector<std::size_t> heard_;
};

std::deque<Device> three() {
  std::deque<Device> devices;
  for (std::uint32_t i = 0; i < 3; ++i)
    devices.emplace_back(ClientId(i)).update.fill(static_cast<std::uint8_t>(i + 1));
  return devices;
}

// A device that has offered its update in a serverless round and knows those of two others.
struct ServerlessRound {
  explicit ServerlessRound(std::vector<std::uint32_t> updates = {1, 2}) {
    device.step(ClientEngine::Received{request});
    for (const std::uint32_t number : updates) announce(number);
  }
  void announce(std::uint32_t number) {
    device.step(ClientEngine::Received{
        protocol::ServerlessUpdate{kRun, RoundNumber(1), TrackId(), Device::object(number)}});
  }
  protocol::AggregateUpdates order(std::vector<std::uint32_t> numbers) const {
    protocol::AggregateUpdates order{.run = kRun, .round = RoundNumber(1)};
    for (const std::uint32_t number : numbers) order.parts.push_back({.object = Device::object(number).id()});
    return order;
  }
  void tell(const protocol::Message& message) { device.step(ClientEngine::Received{message}); }

  Device device{ClientId(0), false};
  protocol::TrainRequest request{
      .run = kRun, .round = RoundNumber(1), .coverage = Coverage::all(kParameters)};
};

}  // namespace

TEST_CASE("task conductor: a client aggregates what the coordinator names, once for each order") {
  ServerlessRound round;
  Device& device = round.device;
  CHECK(device.count<protocol::UpdateHeld>() == 2);
  round.tell(round.order({1, 2}));
  CHECK(device.made.size() == 1);
  CHECK(device.count<protocol::AggregateMade>() == 1);
  round.tell(round.order({1, 2}));  // its answer was lost
  CHECK(device.made.size() == 1);
  CHECK(device.count<protocol::AggregateMade>() == 2);
  round.tell(round.order({2}));  // a coordinator that was restarted names others
  REQUIRE(device.made.size() == 2);
  CHECK(device.made[1].parts.size() == 1);
  CHECK(device.count<protocol::AggregateMade>() == 3);
  CHECK(std::get<protocol::AggregateMade>(device.said.back()).model == Device::object(102));
}

TEST_CASE(
    "task conductor: a client says that it cannot aggregate where an update is unsound that comes last") {
  ServerlessRound round({1});
  round.device.unsound = Device::object(2).id();
  round.tell(round.order({1, 2}));
  CHECK_FALSE(round.device.reported("model.not_aggregated"));
  round.announce(2);
  CHECK(round.device.reported("model.not_aggregated"));
  CHECK(round.device.made.empty());
}

TEST_CASE("task conductor: a model that was ordered otherwise meanwhile is not reported") {
  ServerlessRound round;
  Device& device = round.device;
  device.slow_disk = true;
  round.tell(round.order({1, 2}));
  round.tell(round.order({1}));
  CHECK(device.made.size() == 1);
  device.answer_made(round.request.task());
  CHECK(device.count<protocol::AggregateMade>() == 0);
  REQUIRE(device.made.size() == 2);
  device.answer_made(round.request.task());
  CHECK(device.count<protocol::AggregateMade>() == 1);
}

TEST_CASE("task conductor: after a power cut a client asks its disk for the round's updates again") {
  ServerlessRound round;
  Device& device = round.device;
  device.step(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "no power"}});
  device.step(TaskConductor::PowerCut{});
  device.connect();
  round.tell(round.request);
  round.tell(protocol::ServerlessUpdate{kRun, RoundNumber(1), TrackId(), Device::object(1)});
  round.tell(round.order({1}));
  CHECK(device.made.empty());  // its model is not complete yet
  device.step(RoundStep{kRun, round.request.task(), RoundStep::ModelHere{}});
  CHECK(device.made.size() == 1);
  round.tell(protocol::CancelTask{.run = kRun, .round = RoundNumber(1)});
  CHECK(device.rounds_ended == 1);
}

TEST_CASE("task conductor: a device reveals masks once the disk has recorded it, and not before") {
  std::deque<Device> devices = three();
  Device& device = devices[0];
  device.slow_disk = true;
  Attempt attempt(devices, 1, 1);
  REQUIRE(device.count<protocol::UpdateOffer>() == 1);
  attempt.sum();
  CHECK(devices[1].count<protocol::SecureUnmask>() == 1);
  CHECK(device.count<protocol::SecureUnmask>() == 0);
  // The coordinator asks again while the disk is busy.
  device.step(ClientEngine::Received{attempt.request()});
  CHECK(device.count<protocol::SecureUnmask>() == 0);
  device.written({});
  CHECK(device.count<protocol::SecureUnmask>() == 1);
  // A repeated answer is not recorded again.
  device.step(ClientEngine::Received{attempt.request()});
  CHECK(device.count<protocol::SecureUnmask>() == 2);
  CHECK_FALSE(device.unwritten.has_value());
}

TEST_CASE("task conductor: what the disk could not record is never revealed") {
  std::deque<Device> devices = three();
  Device& device = devices[0];
  device.slow_disk = true;
  Attempt attempt(devices, 1, 1);
  attempt.sum();
  device.written(Error{ErrorCode::kResource, "disk full"});
  CHECK(device.reported("secure.session_stopped"));
  device.step(ClientEngine::Received{attempt.request()});
  CHECK(device.count<protocol::SecureUnmask>() == 0);
}

TEST_CASE("task conductor: a device that lost power cannot help to remove the masks of its update") {
  std::deque<Device> devices = three();
  Attempt attempt(devices, 1, 1);
  Device& device = devices[0];
  REQUIRE(device.engine().holds_update(kRun));
  device.step(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "no power"}});
  device.step(TaskConductor::PowerCut{});
  CHECK(device.engine().holds_update(kRun));  // it is on the disk
  device.connect();
  device.step(ClientEngine::Received{attempt.request()});
  attempt.sum();
  CHECK(device.count<protocol::SecureConsent>() == 0);
  CHECK(device.count<protocol::SecureUnmask>() == 0);
  CHECK(device.count<protocol::SecureKeys>() == 1);  // it begins no second session with this update
}

TEST_CASE("task conductor: after its masks were revealed, a round gets no second sum from this device") {
  std::deque<Device> devices = three();
  Attempt(devices, 1, 1).sum();
  for (const Device& device : devices) REQUIRE(device.count<protocol::SecureUnmask>() == 1);
  const Attempt again(devices, 1, 2);
  for (const Device& device : devices) {
    CHECK(device.count<protocol::TaskFailed>() == 1);
    CHECK(device.count<protocol::SecureKeys>() == 1);
    CHECK(device.reported("secure.session_stopped"));
  }
  for (Device& device : devices) device.update[1] = 9;  // the next round's update is another one
  Attempt(devices, 2, 1).sum();
  for (const Device& device : devices) CHECK(device.count<protocol::SecureUnmask>() == 2);
}

TEST_CASE("task conductor: an update that was summed before is not masked for another sum") {
  std::deque<Device> devices = three();
  Attempt(devices, 1, 1).sum();
  const Attempt second(devices, 2, 1);
  CHECK(devices[0].count<protocol::UpdateOffer>() == 1);  // it trained the very same update
  CHECK(devices[0].count<protocol::TaskFailed>() == 1);
}

TEST_CASE("task conductor: a message of a session that it does not take part in is no surprise") {
  Device device(ClientId(0));
  device.step(
      ClientEngine::Received{protocol::SecureRoster{.session = {kRun, RoundNumber(1), TrackId(), 1}}});
  CHECK_FALSE(device.reported("message.unexpected"));
  device.step(ClientEngine::Received{protocol::Welcome{}});
  CHECK(device.reported("message.unexpected"));
}

TEST_CASE("task conductor: the owner is told that a run has ended, and of each input once") {
  Device device(ClientId(0));
  const int before = device.settlements;
  device.step(ClientEngine::Received{protocol::RunEnded{.run = kRun}});
  CHECK(device.ended == 1);
  CHECK(device.settlements == before + 1);
}

}  // namespace fedge::client
