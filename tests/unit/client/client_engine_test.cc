#include "client/client_engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/client/engine_harness.h"

using namespace fedge;
using fedge::client::ClientEngine;

static_assert(Node<ClientEngine>);

namespace {

using test::EngineHarness;
using test::kRun;

}  // namespace

TEST_CASE("client: fetches, trains, offers, and is free again after the verdict") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.train(1);
  h.finish_training(1);
  REQUIRE(h.sent<protocol::UpdateOffer>() != nullptr);
  CHECK(h.sent<protocol::UpdateOffer>()->samples == SampleCount(60));
  h.feed(ClientEngine::Received{protocol::UpdateVerdict{kRun, RoundNumber(1), true, {}, {}}});
  CHECK(h.effect<ClientEngine::Abandon>() != nullptr);
  h.train(2);
}

TEST_CASE("client: a verdict on another task leaves the update that is kept where it is") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.train(2);
  h.finish_training(2);
  REQUIRE(h.sent<protocol::UpdateOffer>() != nullptr);
  for (const protocol::UpdateVerdict& other :
       {protocol::UpdateVerdict{kRun, RoundNumber(1), true, {}, {}, {}},
        protocol::UpdateVerdict{kRun, RoundNumber(2), true, {}, {}, TrackId(1)},
        protocol::UpdateVerdict{RunId(kRun.value() + 1), RoundNumber(2), true, {}, {}, {}}}) {
    h.feed(ClientEngine::Received{other});
    CHECK(h.effect<ClientEngine::Abandon>() == nullptr);
  }
  h.feed(ClientEngine::Received{protocol::UpdateVerdict{kRun, RoundNumber(2), true, {}, {}, {}}});
  CHECK(h.effect<ClientEngine::Abandon>() != nullptr);
}

TEST_CASE("client: work that arrives while the run is being prepared starts when it is ready") {
  EngineHarness h;
  h.go_online();
  h.feed(ClientEngine::Received{
      protocol::RunDescription{.run = kRun, .name = "r", .seed = 1, .task = "", .layout = {}}});
  h.request(1);
  CHECK(h.effect<ClientEngine::FetchModel>() == nullptr);
  h.feed(ClientEngine::RunPrepared{kRun});
  CHECK(h.effect<ClientEngine::FetchModel>() != nullptr);
}

TEST_CASE("client: reconnects with exponential back-off and jitter, at most the longest delay") {
  EngineHarness h;
  h.go_online();
  std::vector<double> delays;
  for (int attempt = 0; attempt < 10; ++attempt) {
    h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
    REQUIRE(h.engine.next_deadline().has_value());
    const double delay = to_seconds(*h.engine.next_deadline() - h.now);
    CHECK(delay > 0);
    CHECK(delay <= std::min(8.0, std::exp2(attempt)));
    delays.push_back(delay);
    h.now = *h.engine.next_deadline() - Duration(1);
    h.feed(Expired{});
    CHECK(h.effect<ClientEngine::Connect>() == nullptr);  // an early timer has no effect
    h.now += Duration(1);
    h.feed(Expired{});
    CHECK(h.effect<ClientEngine::Connect>() != nullptr);
    CHECK(!h.engine.next_deadline().has_value());
  }
  std::sort(delays.begin(), delays.end());
  CHECK(std::unique(delays.begin(), delays.end()) == delays.end());
  h.feed(ClientEngine::Connected{});
  h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
  CHECK(*h.engine.next_deadline() - h.now <= seconds(1));  // a success resets the back-off
}

TEST_CASE("client: an update finished while offline is offered after the reconnect, not trained again") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.train(4);
  h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "cut"}});
  h.finish_training(4);
  CHECK(h.sent<protocol::UpdateOffer>() == nullptr);
  h.now = *h.engine.next_deadline();
  h.feed(Expired{});
  h.connected();
  h.request(4);
  CHECK(h.effect<ClientEngine::FetchModel>() == nullptr);
  REQUIRE(h.sent<protocol::UpdateOffer>() != nullptr);
  CHECK(h.sent<protocol::UpdateOffer>()->round == RoundNumber(4));
}

TEST_CASE("client: a newer round replaces the task in hand, and the old result is not offered") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.train(1);
  h.request(2);
  CHECK(h.effect<ClientEngine::Abandon>()->task.round == RoundNumber(1));
  CHECK(h.effect<ClientEngine::FetchModel>()->task.round == RoundNumber(2));
  h.finish_training(1);
  CHECK(h.effects.empty());
}

TEST_CASE("client: a cancelled task is dropped") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.train(1);
  h.feed(ClientEngine::Received{protocol::CancelTask{kRun, RoundNumber(1), "round closed"}});
  CHECK(h.effect<ClientEngine::Abandon>() != nullptr);
  h.finish_training(1);
  CHECK(h.effects.empty());
}

TEST_CASE("client: a failure is told to the coordinator with its reason") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.request(1);
  h.feed(ClientEngine::ModelFailed{kRun, {RoundNumber(1), {}}, {ErrorCode::kCorrupt, "chunk 3 is damaged"}});
  REQUIRE(h.sent<protocol::TaskFailed>() != nullptr);
  CHECK(h.sent<protocol::TaskFailed>()->reason == "chunk 3 is damaged");
  CHECK(h.sent<protocol::TaskFailed>()->code == ErrorCode::kCorrupt);
}

TEST_CASE("client: data that cannot be prepared fails the work that waits for it") {
  EngineHarness h;
  h.go_online();
  h.feed(ClientEngine::Received{
      protocol::RunDescription{.run = kRun, .name = "r", .seed = 1, .task = "", .layout = {}}});
  h.request(1);
  h.feed(ClientEngine::RunRejected{kRun, {ErrorCode::kNotFound, "no data here"}});
  REQUIRE(h.sent<protocol::TaskFailed>() != nullptr);
  CHECK(h.sent<protocol::TaskFailed>()->reason == "no data here");
  h.request(2);  // the engine repeats the reason
  REQUIRE(h.sent<protocol::TaskFailed>() != nullptr);
  CHECK(h.sent<protocol::TaskFailed>()->reason == "no data here");
}

TEST_CASE("client: a task that is asked for again is gone on with, whatever the model is now") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.train(1);
  h.finish_training(1);
  protocol::Manifest other;
  other.layout = sha256("moved on");
  h.feed(ClientEngine::Received{protocol::TrainRequest{
      .run = kRun, .round = RoundNumber(1), .model = other, .coverage = {}, .again = true}});
  CHECK(h.effect<ClientEngine::FetchModel>() == nullptr);
  REQUIRE(h.sent<protocol::UpdateOffer>() != nullptr);
  CHECK(h.sent<protocol::UpdateOffer>()->round == RoundNumber(1));
}

TEST_CASE("client: the same round of another model is new work, unless it is said that it is not") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.train(1);
  h.finish_training(1);
  protocol::Manifest other;
  other.layout = sha256("another");
  h.request(1, other);
  CHECK(h.sent<protocol::UpdateOffer>() == nullptr);
  CHECK(h.effect<ClientEngine::Abandon>() != nullptr);
  CHECK(h.effect<ClientEngine::FetchModel>() != nullptr);
}

TEST_CASE(
    "client: started again while it waits to reconnect, it connects at once and waits briefly after that") {
  EngineHarness h;
  h.go_online();
  for (int attempt = 0; attempt < 10; ++attempt)
    h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
  REQUIRE(h.engine.next_deadline().has_value());
  h.feed(ClientEngine::Start{});
  CHECK(h.effect<ClientEngine::Connect>() != nullptr);
  CHECK(!h.engine.next_deadline().has_value());
  h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
  CHECK(*h.engine.next_deadline() - h.now <= seconds(1));
  // Start has no effect while connected or connecting.
  h.go_online();
  h.feed(ClientEngine::Start{});
  CHECK(h.effects.empty());
}

TEST_CASE("client: no error of a link is final, whatever its code, only a goodbye") {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kResource); ++code)
    for (const bool online : {false, true}) {
      EngineHarness h;
      online ? h.go_online() : h.feed(ClientEngine::Start{});
      h.feed(ClientEngine::Disconnected{{static_cast<ErrorCode>(code), "bad record mac"}});
      CHECK(h.effect<ClientEngine::Finished>() == nullptr);
      CHECK(h.engine.next_deadline().has_value());
    }
}

TEST_CASE("a client whose key is revoked says so, tries nothing more, and waits for its owner") {
  EngineHarness h;
  h.feed(ClientEngine::Start{});
  SUBCASE("instead of a welcome") {
    h.feed(ClientEngine::Received{protocol::Goodbye{ErrorCode::kRefused, "key revoked"}});
  }
  SUBCASE("while it is connected") {
    h.connected();
    h.feed(ClientEngine::Received{protocol::Goodbye{ErrorCode::kRefused, "key revoked"}});
    CHECK(h.effect<ClientEngine::Disconnect>() != nullptr);
  }
  REQUIRE(h.effect<ClientEngine::Revoked>() != nullptr);
  CHECK(h.effect<ClientEngine::Revoked>()->reason == "key revoked");
  CHECK(h.effect<ClientEngine::Finished>() == nullptr);
  CHECK(std::string(h.engine.link_name()) == "revoked");
  h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "the link has closed"}});
  h.feed(ClientEngine::Start{});
  h.now += seconds(1e6);
  h.feed(Expired{});
  CHECK(h.effects.empty());
  CHECK(!h.engine.next_deadline().has_value());
  h.feed(ClientEngine::Stop{});
  CHECK(h.effect<ClientEngine::Finished>() != nullptr);
}

TEST_CASE("a client whose key the coordinator does not know asks again, slowly, for ever") {
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kUnsupported}) {
    EngineHarness h;
    h.feed(ClientEngine::Start{});
    for (int attempt = 0; attempt < 50; ++attempt) {
      h.feed(ClientEngine::Received{protocol::Goodbye{code, "not enrolled here"}});
      h.feed(ClientEngine::Disconnected{{code, "not enrolled here"}});
      REQUIRE(h.engine.next_deadline());
      const Duration wait = *h.engine.next_deadline() - h.now;
      CHECK(wait >= seconds(120));
      CHECK(wait <= seconds(240));
      h.now += wait;
      h.feed(Expired{});
      REQUIRE(h.effect<ClientEngine::Connect>() != nullptr);
    }
    h.connected();
    h.feed(ClientEngine::Received{protocol::Goodbye{code, "not enrolled here any more"}});
    CHECK(h.effect<ClientEngine::Disconnect>() == nullptr);
    h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "the link has closed"}});
    CHECK(*h.engine.next_deadline() - h.now >= seconds(120));
  }
}

TEST_CASE("client: work of a run it was not told about is refused") {
  EngineHarness h;
  h.go_online();
  h.request(1);
  REQUIRE(h.sent<protocol::TaskFailed>() != nullptr);
}

TEST_CASE("client: training is told when its task came and how long it is waited for") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.now = Time(seconds(100));
  protocol::TrainRequest request;
  request.run = kRun;
  request.round = RoundNumber(1);
  request.coverage = Coverage::all(10);
  request.time_left = seconds(60);
  h.feed(ClientEngine::Received{request});
  h.now = Time(seconds(110));  // the model took ten seconds to arrive
  h.feed(ClientEngine::ModelFetched{kRun, {RoundNumber(1), {}}});
  const auto* train = h.effect<ClientEngine::Train>();
  REQUIRE(train != nullptr);
  CHECK(train->asked == Time(seconds(100)));
  CHECK(train->time_left == seconds(60));
}

TEST_CASE(
    "status: a record is published when the run is answered, then in every period, and only while online") {
  EngineHarness h;
  h.go_online();
  h.feed(ClientEngine::Received{
      protocol::RunDescription{.run = kRun, .name = "r", .seed = 1, .task = "", .layout = {}}});
  CHECK(h.effect<ClientEngine::Publish>() == nullptr);
  h.feed(ClientEngine::RunPrepared{.run = kRun, .status_every = seconds(10)});
  REQUIRE(h.effect<ClientEngine::Publish>() != nullptr);
  CHECK(h.effect<ClientEngine::Publish>()->round == RoundNumber(0));
  CHECK(h.engine.next_deadline() == h.now + seconds(10));
  h.request(4);
  h.now += seconds(10);
  h.feed(Expired{});
  REQUIRE(h.effect<ClientEngine::Publish>() != nullptr);
  CHECK(h.effect<ClientEngine::Publish>()->round == RoundNumber(4));
  h.now += seconds(3);
  h.feed(Expired{});  // too early
  CHECK(h.effect<ClientEngine::Publish>() == nullptr);
  h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
  h.now += seconds(8);
  h.feed(Expired{});
  CHECK(h.effect<ClientEngine::Publish>() == nullptr);
}

TEST_CASE("status: a run that does not ask is told nothing") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  CHECK(h.effect<ClientEngine::Publish>() == nullptr);
  CHECK_FALSE(h.engine.next_deadline());
}

namespace {

// A harness that starts with an update of round 4, trained by an earlier process.
struct Resumed : EngineHarness {
  Resumed() {
    protocol::TrainRequest request;
    request.run = kRun;
    request.round = RoundNumber(4);
    request.coverage = Coverage::all(10);
    protocol::UpdateOffer offer;
    offer.run = kRun;
    offer.round = RoundNumber(4);
    offer.samples = SampleCount(60);
    feed(ClientEngine::Resumed{request, offer});
    go_online();
  }
};

}  // namespace

TEST_CASE(
    "resume: an update of an earlier process is offered when its task is asked for again, not trained") {
  Resumed h;
  h.describe_and_prepare();
  CHECK(h.sent<protocol::UpdateOffer>() == nullptr);  // no task has asked for it
  h.request(4);
  REQUIRE(h.sent<protocol::UpdateOffer>() != nullptr);
  CHECK(h.sent<protocol::UpdateOffer>()->samples == SampleCount(60));
  CHECK(h.effect<ClientEngine::FetchModel>() == nullptr);
  h.feed(ClientEngine::Received{protocol::UpdateVerdict{kRun, RoundNumber(4), true, {}, {}}});
  CHECK(h.effect<ClientEngine::Abandon>() != nullptr);
  h.train(5);
}

TEST_CASE("resume: an update whose task is not the one asked for is dropped, and that is said") {
  Resumed h;
  h.describe_and_prepare();
  SUBCASE("another round") {
    h.request(5);
    CHECK(h.effect<ClientEngine::FetchModel>() != nullptr);
  }
  SUBCASE("the same round of another model") {
    protocol::Manifest other;
    other.layout = sha256("another");
    h.request(4, other);
    CHECK(h.effect<ClientEngine::FetchModel>() != nullptr);
  }
  SUBCASE("the run has ended") { h.feed(ClientEngine::Received{protocol::RunEnded{kRun, "done"}}); }
  CHECK(h.event("update.dropped").starts_with("update.dropped round=4 reason="));
  REQUIRE(h.effect<ClientEngine::Abandon>() != nullptr);
  CHECK(h.effect<ClientEngine::Abandon>()->task.round == RoundNumber(4));
  CHECK(h.sent<protocol::UpdateOffer>() == nullptr);
}

TEST_CASE("resume: a next task that goes on from this update says that it was accepted") {
  Resumed h;
  h.describe_and_prepare();
  protocol::TrainRequest request;
  request.run = kRun;
  request.round = RoundNumber(5);
  request.last_round = RoundNumber(4);
  request.coverage = Coverage::all(10);
  h.feed(ClientEngine::Received{request});
  CHECK(h.event("update.accepted") == "update.accepted round=4 run=\"77\"");
  CHECK(h.event("update.dropped").empty());
  CHECK(h.effect<ClientEngine::FetchModel>() != nullptr);
}

TEST_CASE("resume: a client that stops keeps a finished update and gives up one that is being trained") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare();
  h.train(1);
  SUBCASE("finished") {
    h.finish_training(1);
    h.feed(ClientEngine::Stop{});
    CHECK(h.effect<ClientEngine::Abandon>() == nullptr);
  }
  SUBCASE("in training") {
    h.feed(ClientEngine::Stop{});
    CHECK(h.effect<ClientEngine::Abandon>() != nullptr);
  }
  CHECK(h.effect<ClientEngine::Finished>() != nullptr);
}

TEST_CASE(
    "N6 row 57: back-off: a link that is cut without a word is tried again within the coordinator's spread") {
  std::vector<double> first;
  std::vector<double> eighth;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EngineHarness h;
    h.rng = Rng(seed);
    h.go_online();
    h.feed(ClientEngine::Connected{{.features = {}, .software = {}, .spread = seconds(5)}});
    std::vector<double> delays;
    for (int attempt = 0; attempt < 8; ++attempt) {
      h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
      delays.push_back(to_seconds(*h.engine.next_deadline() - h.now));
      h.now = *h.engine.next_deadline();
      h.feed(Expired{});
    }
    first.push_back(delays.front());
    eighth.push_back(delays.back());
    h.feed(ClientEngine::Connected{});  // to a coordinator with few clients
    h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
    CHECK(*h.engine.next_deadline() - h.now <= seconds(1));
  }
  // The 200 first delays are drawn from (0, 5], not from (0, 1]; the eighth ones from (0, 8], the longest
  // back-off here.
  CHECK(*std::ranges::min_element(first) < 0.25);
  CHECK(*std::ranges::max_element(first) <= 5);
  CHECK(*std::ranges::max_element(first) > 4.75);
  CHECK(*std::ranges::max_element(eighth) <= 8);
  CHECK(*std::ranges::max_element(eighth) > 7.6);
}

TEST_CASE("back-off: a coordinator that says when to come back is obeyed, once, and is not a failure") {
  std::vector<double> delays;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EngineHarness h;
    h.rng = Rng(seed);
    h.go_online();
    if (seed % 2 == 1) {  // a goodbye instead of a welcome
      h.lose_link();
      h.feed(ClientEngine::Start{});
    }
    h.feed(ClientEngine::Received{protocol::Goodbye{ErrorCode::kUnavailable, "stopping", seconds(20)}});
    h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "stopping"}});
    delays.push_back(to_seconds(*h.engine.next_deadline() - h.now));
    h.now = *h.engine.next_deadline();
    h.feed(Expired{});
    h.feed(ClientEngine::Disconnected{{ErrorCode::kUnavailable, "gone"}});
    CHECK(*h.engine.next_deadline() - h.now <= seconds(1));  // the first failure
  }
  CHECK(*std::ranges::min_element(delays) >= 20);
  CHECK(*std::ranges::min_element(delays) < 22);
  CHECK(*std::ranges::max_element(delays) <= 40);
  CHECK(*std::ranges::max_element(delays) > 38);
}

// The ids come from Python: hashlib.sha256(b"fedge trace\nround\n000000000000004d\n1").
TEST_CASE("client: events about a task name its trace in the daemon, and none in a simulation") {
  for (const bool traced : {false, true}) {
    CAPTURE(traced);
    EngineHarness h(traced);
    h.go_online();
    h.describe_and_prepare();
    h.offer(1);
    h.feed(ClientEngine::Received{protocol::UpdateVerdict{kRun, RoundNumber(1), true, {}, {}}});
    const std::string trace = " trace=\"02b0c5ed1d82ce82989318b83111e5d3\"";
    CHECK(h.event("update.accepted") == "update.accepted round=1 run=\"77\"" + (traced ? trace : ""));
    h.train(4);
    h.feed(ClientEngine::TrainingFailed{kRun, {RoundNumber(4), {}}, {ErrorCode::kResource, "no memory"}});
    const std::string next = " trace=\"2d83373a21f8fee8452d5e8baead4450\"";
    CHECK(h.event("task.failed") ==
          "task.failed round=4 reason=\"no memory\" run=\"77\"" + (traced ? next : ""));
  }
}
