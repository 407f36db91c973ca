#include "sim/simulation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using sim::Outcome;
using sim::Settings;
using sim::simulate;
using sim::SimulatedRun;
using sim::operator+;

TEST_CASE("simulation: every round completes, the model moves, time and bytes are counted") {
  const Outcome outcome = simulate({});
  REQUIRE(outcome.rounds.size() == 3);
  for (const auto& round : outcome.rounds) {
    CHECK(round.clients_selected == 4);
    CHECK(round.clients_completed == 4);
    CHECK(round.bytes_up > 4 * 7850 * 4);
    CHECK(round.bytes_down > 4 * 7850 * 4);
  }
  CHECK(outcome.rounds[0].virtual_seconds < outcome.rounds[1].virtual_seconds);
  CHECK(outcome.rounds[0].model_hash != outcome.rounds[1].model_hash);
}

TEST_CASE(
    "simulation: the same file gives the same models and times, another seed others, and threads do not "
    "matter") {
  const Outcome first = simulate({"simulation.dropout.probability=0.3", "simulation.device.sigma=1"});
  const Outcome again =
      simulate({"simulation.dropout.probability=0.3", "simulation.device.sigma=1"}, {.threads = 3});
  const Outcome other =
      simulate({"simulation.dropout.probability=0.3", "simulation.device.sigma=1", "run.seed=6"});
  CHECK(first.hashes() == again.hashes());
  CHECK(first.events == again.events);
  CHECK(first.seconds == again.seconds);
  CHECK(first.hashes() != other.hashes());
}

TEST_CASE("simulation: slower devices and links cost virtual time by what they are slower") {
  const auto seconds_of = [](const std::vector<std::string>& settings) { return simulate(settings).seconds; };
  const std::vector<std::string> ideal{"simulation.network.latency=0", "simulation.network.down_mbps=1e9",
                                       "simulation.network.up_mbps=1e9",
                                       "simulation.device.samples_per_second=4"};
  // Four samples at four a second: one second a round.
  CHECK(seconds_of(ideal) == doctest::Approx(3.0).epsilon(0.001));
  auto latency = ideal;
  latency[0] = "simulation.network.latency=1";
  // Joining takes 6; then each round: request 1, fetch 2, train 1, offer 1, fetch 2.
  CHECK(seconds_of(latency) > 3.0 * 7.0);
  auto uplink = ideal;
  uplink[2] = "simulation.network.up_mbps=0.2512";  // 31.4 kB of update take one second
  CHECK(seconds_of(uplink) == doctest::Approx(6.0).epsilon(0.03));
}

TEST_CASE(
    "simulation: an upload that is discarded goes no further: it counts as far as it came, and the next "
    "round "
    "finds the line free") {
  // Six are selected, three needed, and the uplinks differ: the other three uploads are incomplete.
  const Outcome outcome =
      simulate({"run.rounds=4", "data.partition.clients=6", "sampling.clients_per_round=3",
                "sampling.over_selection=2", "simulation.network.latency=0",
                "simulation.network.down_mbps=1e6", "simulation.network.up_mbps=0.1",
                "simulation.network.sigma=1", "simulation.device.samples_per_second=1e6"});
  const double update = 4 * 7850;
  double last = 0;
  for (const auto& round : outcome.rounds) {
    CHECK(round.clients_completed == 3);
    CHECK(static_cast<double>(round.bytes_up) > 3 * update);
    CHECK(static_cast<double>(round.bytes_up) < 5.9 * update);
    // Every round equals the first.
    CHECK(static_cast<double>(round.bytes_up) ==
          doctest::Approx(static_cast<double>(outcome.rounds[0].bytes_up)).epsilon(0.01));
    CHECK(round.virtual_seconds - std::exchange(last, round.virtual_seconds) ==
          doctest::Approx(outcome.rounds[0].virtual_seconds).epsilon(0.05));
  }
}

TEST_CASE(
    "simulation: a download whose task is cancelled goes no further: it counts as far as it came, and the "
    "next task finds the line free") {
  // Six are selected, three needed, and the downlinks differ: the other three downloads are incomplete.
  const Outcome outcome =
      simulate({"run.rounds=4", "data.partition.clients=6", "sampling.clients_per_round=3",
                "sampling.over_selection=2", "simulation.network.latency=0",
                "simulation.network.down_mbps=0.1", "simulation.network.up_mbps=1e6",
                "simulation.network.sigma=1", "simulation.device.samples_per_second=1e6"});
  const double model = 4 * 7850;
  double last = 0;
  for (const auto& round : outcome.rounds) {
    CHECK(round.clients_completed == 3);
    CHECK(static_cast<double>(round.bytes_down) > 3 * model);
    CHECK(static_cast<double>(round.bytes_down) < 5.9 * model);
    CHECK(round.virtual_seconds - std::exchange(last, round.virtual_seconds) ==
          doctest::Approx(outcome.rounds[0].virtual_seconds).epsilon(0.05));
  }
}

TEST_CASE("simulation: a download that a lost connection ends counts as far as it came") {
  // Every client loses its connection in its first seconds; a download takes 2.5 seconds.
  const Outcome outcome =
      simulate({"run.rounds=1", "run.round_deadline=20", "simulation.dropout.probability=1",
                "simulation.dropout.offline_seconds=1000", "sampling.clients_per_round=10",
                "simulation.network.down_mbps=0.1", "simulation.device.samples_per_second=1e6"});
  REQUIRE(outcome.count("simulated dropout") == 10);
  CHECK(outcome.rounds[0].clients_completed == 0);
  CHECK(outcome.rounds[0].bytes_down < 8 * 4 * 7850);
  CHECK(outcome.rounds[0].bytes_down > 2 * 4 * 7850);
}

TEST_CASE("simulation: a transfer that a lost connection ends goes on from the chunks that have arrived") {
  Settings more = {"run.chunk_size=4096"};
  SUBCASE("of updates") { more = more + Settings{"simulation.network.up_mbps=0.1"}; }
  SUBCASE("of models") { more = more + Settings{"simulation.network.down_mbps=0.1"}; }
  SUBCASE("of models with a control variate") {
    more = more + Settings{"simulation.network.down_mbps=0.1", "strategy.kind=scaffold"};
  }
  SUBCASE("of models from other clients") {
    more = more + Settings{"simulation.network.down_mbps=0.1", "dissemination.kind=swarm"};
  }
  const Settings ideal = {"sampling.clients_per_round=10", "run.round_deadline=1000",
                          "simulation.network.latency=0", "simulation.device.samples_per_second=1e6"};
  const Outcome whole = simulate(ideal + more);
  const Outcome cut = simulate(
      ideal + more + Settings{"simulation.dropout.probability=0.7", "simulation.dropout.offline_seconds=1"});
  const std::size_t cuts = cut.count("simulated dropout");
  CHECK(cuts > 20);
  CHECK(cut.hashes() == whole.hashes());
  const auto bytes = [](const Outcome& outcome) {
    double sum = 0;
    for (const auto& round : outcome.rounds)
      sum += static_cast<double>(round.bytes_up) + static_cast<double>(round.bytes_down);
    return sum;
  };
  // A lost connection repeats at most one chunk, and the messages of a client that connects.
  CHECK(bytes(cut) > bytes(whole));
  CHECK(bytes(cut) < bytes(whole) + 7000 * static_cast<double>(cuts));
}

TEST_CASE("simulation: clients of a large federation spread their reconnections as the coordinator asks") {
  const auto longest_pause = [](std::uint32_t clients) {
    const test::TemporaryDirectory data;
    test::write_tiny_dataset(data, clients);
    double longest = 0;
    const auto listen = [&](const Event& event) {
      const std::string text = to_string(event);
      const auto pause = text.find("retry_seconds=");
      if (pause != std::string::npos) longest = std::max(longest, std::stod(text.substr(pause + 14)));
    };
    SimulatedRun(
        data.path(),
        {"data.partition.clients=" + std::to_string(clients), "sampling.clients_per_round=40",
         "simulation.dropout.probability=0.7", "simulation.dropout.offline_seconds=0", "run.rounds=1"},
        {.on_event = listen})
        .run();
    return longest;
  };
  CHECK(longest_pause(40) <= 1);
  // A coordinator admits 1000 clients at once and 200 a second: the others need five seconds.
  CHECK(longest_pause(2000) > 2);
  CHECK(longest_pause(2000) <= 5);
}

TEST_CASE("simulation: clients that drop out are replaced and the rounds still complete") {
  const Outcome outcome = simulate({"simulation.dropout.probability=0.5", "run.rounds=5"});
  REQUIRE(outcome.rounds.size() == 5);
  CHECK(outcome.count("client.dropped") > 0);
  CHECK(outcome.count("client.replaced") > 0);
  for (const auto& round : outcome.rounds) CHECK(round.clients_completed > 0);
}

TEST_CASE("simulation: when everybody always drops out, rounds end at their deadline with nobody") {
  const Outcome outcome =
      simulate({"simulation.dropout.probability=1", "simulation.dropout.offline_seconds=1000",
                "run.round_deadline=100", "run.rounds=2", "sampling.clients_per_round=10"});
  REQUIRE(outcome.rounds.size() == 2);
  CHECK(outcome.rounds[0].clients_completed == 0);
  CHECK(std::isnan(outcome.rounds[0].train_loss));
  CHECK(outcome.rounds[0].model_hash == outcome.rounds[1].model_hash);
  CHECK(outcome.count("reason=\"deadline\"") == 2);
}

TEST_CASE("simulation: over-selection closes the round without its stragglers") {
  const Outcome all = simulate({"simulation.device.sigma=2"});
  const Outcome over = simulate({"simulation.device.sigma=2", "sampling.over_selection=2"});
  CHECK(over.rounds[0].clients_selected == 8);
  CHECK(over.rounds[0].clients_completed == 4);
  CHECK(over.seconds < all.seconds);
}

TEST_CASE("simulation: partial work lets slow clients send what they have before the deadline") {
  // Four samples a client: 40 steps of two samples take 80 seconds; a round has 50.
  const std::vector<std::string> slow = {"simulation.device.samples_per_second=1", "training.local_epochs=20",
                                         "run.round_deadline=50"};
  const Outcome late = simulate(slow);
  for (const auto& round : late.rounds) CHECK(round.clients_completed == 0);

  std::vector<std::string> settings = slow;
  settings.push_back("training.partial_work=0.8");
  const Outcome partial = simulate(settings);
  REQUIRE(partial.rounds.size() == 3);
  for (const auto& round : partial.rounds) CHECK(round.clients_completed == 4);
  CHECK(partial.rounds[0].virtual_seconds == doctest::Approx(40).epsilon(0.05));

  // The limit does not affect fast clients: the model is the same as without it.
  CHECK(simulate({"training.partial_work=0.8"}).hashes() == simulate({}).hashes());
}

TEST_CASE("simulation: figures of labels count the samples that clients train on, not those they withhold") {
  // Each client has the four samples of one label.
  const Outcome outcome =
      simulate({"data.partition.kind=pathological", "data.partition.classes_per_client=1",
                "sampling.clients_per_round=10",
                "tracks.disagreement=[{ kind = \"partial_data\", clients = [\"3\"], withheld = 0.75, "
                "from_round = 2, until_round = 2 }]"});
  REQUIRE(outcome.rounds.size() == 3);
  CHECK(outcome.rounds[0].labels.variance == doctest::Approx(0));
  // Nine labels with 4 samples and one with 1, the mean being 3.7: (9 * 0.3^2 + 2.7^2) / 10.
  CHECK(outcome.rounds[1].labels.variance == doctest::Approx(0.81));
  CHECK(outcome.rounds[1].labels.covered == 10);
  CHECK(outcome.rounds[2].labels.variance == doctest::Approx(0));
}

TEST_CASE("simulation: an interruption ends it after the event in hand") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  auto document = config::parse_toml("[data]\ndirectory = \"" + data.path().string() +
                                         "\"\npartition = { clients = 4 }\n[model]\nkind = \"softmax\"\n",
                                     "test.toml");
  REQUIRE(document);
  const auto config = run::read_run_config(*document);
  REQUIRE(config);
  const auto task = learn::Task::build(config->task, config->seed);
  const auto test = learn::load_test(config->task.data);
  Sequential sequential;
  const auto store = protocol::make_memory_chunk_store(1 << 30);
  auto state = server::RunState::create(*config, (*task)->model(), test->get(), *store, sequential);
  REQUIRE(state);
  auto engine = server::make_engine(*state);
  REQUIRE(engine);
  sim::Simulation simulation({}, **task, *state, std::move(*engine), sequential);
  CHECK(simulation.run({.on_round = [](const server::RoundMetrics&) {},
                        .on_event = {},
                        .interrupted = [&] { return simulation.events() >= 3; }}));
  CHECK(simulation.events() == 3);
}

TEST_CASE("simulation: a model that diverges fails its client's task with the key to change, not the run") {
  const Outcome outcome =
      simulate({"training.optimizer.learning_rate=1000", "model.kind=mlp", "model.hidden=[8, 8]",
                "run.rounds=1", "training.local_epochs=20", "run.round_deadline=100"});
  REQUIRE(outcome.rounds.size() == 1);
  CHECK(outcome.rounds[0].clients_completed == 0);
  CHECK(outcome.count("task.failed") > 0);
  CHECK(outcome.count("lower training.optimizer.learning_rate") > 0);
}

TEST_CASE("simulation: an attack made of the honest updates is refused where those are parts of the model") {
  std::string planner;
  SUBCASE("random rows") { planner = "random_mask"; }
  SUBCASE("thinner networks") { planner = "heterofl"; }
  const std::vector<std::string> settings = {"model.kind=mlp", "model.hidden=[8, 8]",
                                             "strategy.kind=" + planner};
  for (const char* attack : {"alie", "ipm", "min_max"}) {
    auto attacked = settings;
    attacked.push_back(std::string("simulation.attack.kind=") + attack);
    const Outcome outcome = sim::try_simulate(attacked, {});
    REQUIRE(outcome.failure);
    CHECK(
        outcome.failure->message ==
        "simulation.attack.kind: \"alie\", \"ipm\" and \"min_max\" need whole updates, but strategy.planner "
        "\"" +
            planner + "\" trains parts of the model");
    CHECK(outcome.events.empty());
  }
  auto alone = settings;
  alone.push_back("simulation.attack.kind=sign_flip");
  CHECK(simulate(alone).rounds.size() == 3);
}

TEST_CASE(
    "simulation: such an attack is refused where there are no rounds, or where training is broken off") {
  for (const auto& [setting, reason] : std::vector<std::pair<std::string, std::string>>{
           {"strategy.kind=fedbuff", "has no rounds"},
           {"training.partial_work=0.5", "training.partial_work"}}) {
    const Outcome outcome = sim::try_simulate({setting, "simulation.attack.kind=ipm"});
    REQUIRE(outcome.failure);
    CHECK(outcome.failure->message.find(reason) != std::string::npos);
    CHECK(outcome.events.empty());
  }
}
