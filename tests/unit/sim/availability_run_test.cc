// Whole runs with devices that come and go.
#include <doctest/doctest.h>

#include "tests/unit/sim/availability/trace_setting.h"
#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using sim::Outcome;
using sim::Settings;
using sim::TraceSetting;
using sim::operator+;

namespace {

// Three clients, two in each round. A client joins within 0.12 s, trains for a second, and uploads in no
// time. Client 0 has 14 samples, the others 13.
const Settings kThree = {"data.partition.clients=3",
                         "sampling.clients_per_round=2",
                         "run.wait_for_clients=2",
                         "run.rounds=1",
                         "simulation.device.samples_per_second=13",
                         "simulation.network.down_mbps=1e9",
                         "simulation.network.up_mbps=1e9"};

}  // namespace

TEST_CASE("availability: devices that are up throughout make the run that has no availability") {
  std::string lines;
  for (int c = 0; c < 10; ++c) lines += std::to_string(c) + ",0,1000000\n";
  const Settings settings = {"run.wait_for_clients=9", "simulation.device.sigma=1",
                             "simulation.dropout.probability=0.3"};
  const Outcome always = sim::simulate(settings);
  const Outcome traced = sim::simulate(settings + TraceSetting(lines).settings);
  CHECK(traced.hashes() == always.hashes());
  CHECK(traced.events == always.events);
  CHECK(traced.seconds == always.seconds);
}

TEST_CASE("availability: a device that goes down while it trains is lost, and trains again when it is back") {
  const Outcome whole = sim::simulate(kThree + TraceSetting("0,0,1000\n1,0,1000\n").settings);
  REQUIRE(whole.rounds.size() == 1);
  REQUIRE(whole.rounds[0].virtual_seconds < 1.5);  // about one second of training

  const Outcome cut = sim::simulate(kThree + TraceSetting("0,0,1000\n1,0,0.6\n1,5,1000\n").settings);
  REQUIRE(cut.rounds.size() == 1);
  CHECK(cut.count("client.dropped") == 1);
  CHECK(cut.count("the device went down while it trained") == 1);
  CHECK(cut.count("client.disconnected") == 1);
  CHECK(cut.rounds[0].clients_completed == 2);
  const double longer = whole.rounds[0].virtual_seconds - 1.0 / 13;  // client 0 finished last
  // The device is back at 5: it joins at once without back-off, and trains from the start, with the model
  // that is on its disk.
  const double fetch = 2 * 0.02;
  CHECK(cut.rounds[0].virtual_seconds == doctest::Approx(longer + 5 - fetch).epsilon(1e-3));
  // The same work at a later time gives the same model.
  CHECK(cut.hashes() == whole.hashes());
}

TEST_CASE("availability: what happens on a device because it went down is no reason to warn") {
  std::size_t about_it = 0;
  bool warned = false;
  sim::simulate(kThree + TraceSetting("0,0,1000\n1,0,0.6\n1,5,1000\n").settings,
                {.on_event = [&](const Event& event) {
                  if (to_string(event).find("the device went down") == std::string::npos) return;
                  ++about_it;
                  warned = warned || event.severity > Severity::kInfo;
                }});
  CHECK(about_it == 2);
  CHECK(!warned);
}

TEST_CASE(
    "availability: what was under way when a device went down is not taken for what it began afterwards") {
  // The device is back so soon that the first training would have ended during the second one.
  const Outcome cut = sim::simulate(kThree + TraceSetting("0,0,1000\n1,0,0.6\n1,0.7,1000\n").settings);
  REQUIRE(cut.rounds.size() == 1);
  CHECK(cut.rounds[0].clients_completed == 2);
  const Outcome whole = sim::simulate(kThree + TraceSetting("0,0,1000\n1,0,1000\n").settings);
  const double longer = whole.rounds[0].virtual_seconds - 1.0 / 13;
  CHECK(cut.rounds[0].virtual_seconds == doctest::Approx(longer + 0.7 - 2 * 0.02).epsilon(1e-3));
}

TEST_CASE("availability: a device that goes down while it trains is replaced by one that has come up") {
  const Outcome outcome = sim::simulate(kThree + TraceSetting("0,0,1000\n1,0,0.6\n2,0.3,1000\n").settings);
  REQUIRE(outcome.rounds.size() == 1);
  CHECK(outcome.count("client.dropped") == 1);
  CHECK(outcome.count("client.replaced") == 1);
  CHECK(outcome.rounds[0].clients_completed == 2);
  CHECK(outcome.rounds[0].virtual_seconds < 2);
}

TEST_CASE("availability: an update that was finished when the device went down is offered when it is back") {
  // The upload takes a second. The device goes down in the middle of it.
  const Settings slow = kThree + Settings{"simulation.network.up_mbps=0.2512"};
  const Outcome whole = sim::simulate(slow + TraceSetting("0,0,1000\n1,0,1000\n").settings);
  REQUIRE(whole.rounds[0].virtual_seconds > 2.1);
  const Outcome cut = sim::simulate(slow + TraceSetting("0,0,1000\n1,0,1.9\n1,5,1000\n").settings);
  REQUIRE(cut.rounds.size() == 1);
  CHECK(cut.count("client.dropped") == 1);
  CHECK(cut.count("while it trained") == 0);
  CHECK(cut.rounds[0].clients_completed == 2);
  CHECK(cut.hashes() == whole.hashes());
  // The client joins, offers and uploads, but does not train again.
  CHECK(cut.rounds[0].virtual_seconds > 6.0);
  CHECK(cut.rounds[0].virtual_seconds < 6.5);
}

TEST_CASE("availability: what had arrived when a device went down is not fetched again, what had not is") {
  // Adapters of rank 4 and 31,400 bytes of frozen weights: the fetch takes a second, and so does training.
  const Settings slow =
      kThree + Settings{"strategy.kind=fedit", "model.adapter.rank=4", "training.optimizer.learning_rate=0.1",
                        "simulation.network.down_mbps=0.3584"};
  const auto bytes_down = [&](const std::string& client_1) {
    const Outcome outcome = sim::simulate(slow + TraceSetting("0,0,1000\n" + client_1).settings);
    REQUIRE(outcome.rounds.size() == 1);
    REQUIRE(outcome.rounds[0].clients_completed == 2);
    return outcome.rounds[0].bytes_down;
  };
  const std::uint64_t whole = bytes_down("1,0,1000\n");
  constexpr std::uint64_t kFrozen = 31'400;
  constexpr std::uint64_t kMessages = 1'000;
  CHECK(whole > 2 * kFrozen);
  CHECK(bytes_down("1,0,1.6\n1,5,1000\n") < whole + kMessages);  // down while it trained
  // Down while it fetched: about half of the only chunk was sent, and that half is lost.
  CHECK(bytes_down("1,0,0.6\n1,5,1000\n") > whole + kFrozen / 3);
}

TEST_CASE("availability: a fetch that was given up brings nothing of the one that followed it") {
  // A fetch takes 2.5 seconds, a round one: no client ever obtains the frozen weights.
  const Outcome outcome = sim::simulate(
      kThree + Settings{"strategy.kind=fedit", "model.adapter.rank=4", "training.optimizer.learning_rate=0.1",
                        "simulation.network.down_mbps=0.14336", "run.round_deadline=1", "run.rounds=12"});
  REQUIRE(outcome.rounds.size() == 12);
  std::uint64_t bytes = 0;
  for (const auto& round : outcome.rounds) {
    CHECK(round.clients_completed == 0);
    bytes += round.bytes_down;
  }
  // Each fetch transfers a third of them, again and again, because they are one chunk.
  CHECK(bytes > 18 * 44'000 / 3);
}

TEST_CASE("availability: a run goes on after nobody was there for a while") {
  std::string lines;
  for (int c = 0; c < 3; ++c) lines += std::to_string(c) + ",0,2\n" + std::to_string(c) + ",100,200\n";
  const Outcome outcome = sim::simulate(kThree + TraceSetting(lines).settings + Settings{"run.rounds=3"});
  REQUIRE(outcome.rounds.size() == 3);
  CHECK(outcome.rounds[0].virtual_seconds < 2);
  // Round 2 was interrupted and repeated.
  CHECK(outcome.rounds[1].virtual_seconds > 101);
  CHECK(outcome.rounds[2].virtual_seconds < 104);
  for (const auto& round : outcome.rounds) CHECK(round.clients_completed == 2);
}

TEST_CASE("availability: a run in which nobody ever comes back ends with an error, not silently") {
  const Outcome outcome =
      sim::try_simulate(kThree + TraceSetting("0,0,2\n1,0,2\n2,0,2\n").settings + Settings{"run.rounds=3"});
  REQUIRE(outcome.failure);
  CHECK(outcome.failure->message ==
        "the simulation stalled in round 2: the event queue is empty, so the run cannot continue");
}

TEST_CASE("availability: a run that waits for more devices than are ever up at once ends with an error") {
  const Outcome outcome = sim::try_simulate(
      {"simulation.availability.kind=gilbert_elliott", "simulation.availability.p_up_down=0.5",
       "simulation.availability.p_down_up=0.01", "run.wait_for_clients=9"});
  REQUIRE(outcome.failure);
  CHECK(outcome.failure->message.find("no round ended within 30 days of virtual time") != std::string::npos);
  CHECK(outcome.failure->message.find("run.wait_for_clients") != std::string::npos);
  CHECK(outcome.rounds.empty());
}

TEST_CASE("availability: waiting for all clients is refused with what to set instead") {
  const Outcome outcome = sim::try_simulate({"simulation.availability.kind=diurnal"});
  REQUIRE(outcome.failure);
  CHECK(
      outcome.failure->message ==
      "run.wait_for_clients: is 10 (all clients, the default), but with simulation.availability all clients "
      "may never be available at the same time; set it to a lower number, for example 4");
  CHECK(outcome.events.empty());
}

TEST_CASE(
    "availability: every kind gives the same run again, whatever the threads, and another seed another") {
  for (const Settings& kind : std::vector<Settings>{
           {"simulation.availability.kind=gilbert_elliott", "simulation.availability.slot_seconds=2"},
           {"simulation.availability.kind=diurnal", "simulation.availability.up_mu=2",
            "simulation.availability.down_mu=1", "simulation.availability.up_sigma=0.5"},
           {"simulation.availability.kind=common_shock", "simulation.availability.slot_seconds=2",
            "simulation.availability.groups=5", "simulation.availability.tied_to_labels=true"}}) {
    CAPTURE(kind[0]);
    const Settings settings = kind + Settings{"run.wait_for_clients=3",
                                              "run.rounds=6",
                                              "run.round_deadline=100",
                                              "simulation.device.sigma=1",
                                              "simulation.device.samples_per_second=4",
                                              "simulation.dropout.probability=0.1"};
    const Outcome first = sim::simulate(settings);
    const Outcome again = sim::simulate(settings, {.threads = 3});
    const Outcome other = sim::simulate(settings + Settings{"run.seed=6"});
    CHECK(first.rounds.size() == 6);
    CHECK(first.count("the device went down") > 0);
    CHECK(first.hashes() == again.hashes());
    CHECK(first.events == again.events);
    CHECK(first.seconds == again.seconds);
    CHECK(first.hashes() != other.hashes());
  }
}

TEST_CASE("availability: an asynchronous run takes devices as they come and go") {
  const Outcome outcome = sim::simulate(
      {"strategy.kind=fedbuff", "strategy.schedule.buffer_size=3", "run.wait_for_clients=2", "run.rounds=10",
       "simulation.device.samples_per_second=2", "simulation.availability.kind=gilbert_elliott",
       "simulation.availability.slot_seconds=3"});
  CHECK(outcome.rounds.size() == 10);
  CHECK(outcome.count("the device went down") > 0);
}
