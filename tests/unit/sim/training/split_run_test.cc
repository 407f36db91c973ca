// Runs of split training in virtual time: the models, the times and the bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "learn/models/adapters.h"
#include "learn/split/planned_exchanges.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

constexpr std::size_t kSplitClients = 5;
constexpr std::size_t kSplitBlocks = 3;
constexpr std::size_t kSplitWidth = 16;
constexpr std::size_t kSplitRank = 4;
constexpr std::size_t kSplitContext = 16;

// Five clients with a text each, of unequal lengths.
struct SplitTexts {
  SplitTexts() {
    const std::vector<std::string> words = {"the ", "sea ", "was ", "calm ",
                                            "and ", "old ", "men ", "went. "};
    Rng rng(3);
    for (std::size_t client = 0; client < kSplitClients; ++client) {
      std::string text;
      while (text.size() < 700 + 100 * client) text += words[rng.below(words.size())];
      directory.write(std::string(1, static_cast<char>('a' + client)) + ".txt", {text.begin(), text.end()});
    }
  }
  test::TemporaryDirectory directory;
};

const Settings kSplitModel = {"data.dataset=text",
                              "data.context=" + std::to_string(kSplitContext),
                              "data.partition.kind=natural",
                              "data.validation=0.1",
                              "data.partition.clients=" + std::to_string(kSplitClients),
                              "sampling.clients_per_round=" + std::to_string(kSplitClients),
                              "model.kind=llama",
                              "model.layers=" + std::to_string(kSplitBlocks),
                              "model.width=" + std::to_string(kSplitWidth),
                              "model.heads=2",
                              "model.adapter.rank=" + std::to_string(kSplitRank),
                              "training.batch_size=8",
                              "training.local_steps=4",
                              "training.optimizer.kind=adamw",
                              "training.optimizer.learning_rate=0.01"};
const Settings kSplitRun = {"strategy.kind=splitft"};

Settings fixed_cut(std::size_t cut) {
  return kSplitRun + Settings{"strategy.planner.cut=fixed", "strategy.planner.blocks=" + std::to_string(cut)};
}

Outcome simulate_text(const Settings& settings, const SimulateOptions& options = {}) {
  const SplitTexts texts;
  return SimulatedRun(texts.directory.path(), kSplitModel + settings, options).run();
}

std::string split_refusal(const Settings& settings) {
  auto document = config::parse_toml("", "test.toml");
  REQUIRE(document);
  for (const std::string& setting : kSplitModel + settings) REQUIRE(config::set(*document, setting));
  const auto run = read_experiment(*document);
  return run ? "accepted" : run.error().message;
}

double round_seconds(const Outcome& outcome, std::size_t round) {
  return outcome.rounds.at(round).virtual_seconds -
         (round == 0 ? 0 : outcome.rounds.at(round - 1).virtual_seconds);
}

}  // namespace

TEST_CASE("split runs: wherever the clients are cut, the models are those of FedAvg over the adapters") {
  const auto expected = simulate_text({}).hashes();
  REQUIRE(expected.size() == 3);
  CHECK(expected[0] != expected[1]);
  for (std::size_t cut = 1; cut <= kSplitBlocks; ++cut)
    CHECK(simulate_text(fixed_cut(cut)).hashes() == expected);
  const Settings random = kSplitRun + Settings{"strategy.planner.cut=random"};
  for (const int seed : {5, 6, 7}) {
    const Settings other = {"run.seed=" + std::to_string(seed)};
    CHECK(simulate_text(random + other).hashes() == simulate_text(other).hashes());
  }
  CHECK(simulate_text(random + Settings{"training.split.targets=kept"}).hashes() == expected);
  CHECK(simulate_text(random, {.threads = 3}).hashes() == expected);
  CHECK(simulate_text(random + Settings{"simulation.device.sigma=1", "simulation.network.latency=0.1"})
            .hashes() == expected);
}

TEST_CASE("split runs: a moved cut does not change what the model computes") {
  const Settings adaptive =
      kSplitRun + Settings{"strategy.planner.period=1", "run.rounds=6", "simulation.device.sigma=1"};
  const Outcome moving = simulate_text(adaptive);
  CHECK(moving.hashes() == simulate_text(Settings{"run.rounds=6"}).hashes());
  CHECK(moving.rounds[0].bytes_up != moving.rounds[5].bytes_up);
}

TEST_CASE("split runs: fewer ranks at the cut and rounded activations give other models that learn") {
  const Settings more = {"run.rounds=6", "strategy.planner.cut=random"};
  const Outcome exact = simulate_text(kSplitRun + more);
  for (const Settings& other :
       {Settings{"strategy.planner.cut_ranks=2"}, Settings{"training.split.codec=int8"},
        Settings{"training.split.codec=int8", "training.split.error_feedback=true"}}) {
    const Outcome outcome = simulate_text(kSplitRun + more + other);
    CHECK(outcome.hashes() != exact.hashes());
    CHECK(outcome.rounds.back().test_loss < outcome.rounds.front().test_loss);
    CHECK(outcome.rounds.back().test_loss == doctest::Approx(exact.rounds.back().test_loss).epsilon(0.01));
    CHECK(simulate_text(kSplitRun + more + other, {.threads = 3}).hashes() == outcome.hashes());
  }
}

TEST_CASE(
    "split runs: the bytes are those of adapters below the cut, activations, gradients, and little else") {
  const SplitTexts texts;
  // In chunks of 4 KiB, so that few bytes of other parameters travel.
  const Settings small = {"run.chunk_size=4096", "simulation.network.latency=0.01"};
  for (const bool kept : {false, true})
    for (const bool int8 : {false, true})
      for (std::size_t cut = 1; cut <= kSplitBlocks; ++cut) {
        CAPTURE(cut);
        CAPTURE(kept);
        CAPTURE(int8);
        Settings settings = kSplitModel + small + fixed_cut(cut);
        if (kept) settings.emplace_back("training.split.targets=kept");
        if (int8) settings.emplace_back("training.split.codec=int8");
        SimulatedRun run(texts.directory.path(), settings);
        const learn::Task& task = *run.task;
        const Outcome outcome = run.run();
        // Sum over the clients' steps of b * T tokens, without padding.
        std::size_t tokens = 0;
        for (std::uint32_t client = 0; client < kSplitClients; ++client) {
          learn::PlannedExchanges plan(task, ClientId(client), RoundNumber(2), 1, 0);
          CHECK(plan.steps() == 4);
          while (const auto piece = plan.next()) tokens += piece->tokens();
        }
        REQUIRE(tokens > 4 * 8 * kSplitContext * kSplitClients * 9 / 10);
        const std::size_t values = (kept ? 2 : 1) * tokens * (int8 ? kSplitWidth + 4 : 4 * kSplitWidth);
        const SplitLayout& layout = task.split_layout();
        const std::size_t adapters = kSplitClients * 4 * layout.below(cut).count();
        const std::size_t targets = kept ? 0 : tokens;  // a byte each
        // Headers, losses and messages about the task.
        const std::size_t messages = kSplitClients * 4 * 4 * 100 + kSplitClients * 1500;
        const auto& round = outcome.rounds[1];
        CHECK(round.activation_bytes_up == values);
        CHECK(round.activation_bytes_down == values);
        CHECK(round.bytes_up >= values + adapters + targets);
        CHECK(round.bytes_up <= values + adapters + targets + messages);
        CHECK(round.bytes_down >= values + adapters);
        // Whole chunks of the model, which contain adapters of other blocks too.
        const std::size_t chunks =
            kSplitClients * (4 * kSplitRank * task.model().adapters()->row() + 2 * 4096);
        CHECK(round.bytes_down <= values + chunks + messages);
      }
}

TEST_CASE("split runs: the rank of the adapters changes the bytes of adapters only") {
  // As in the paper's Table II, where rank 1 to 8 moves the traffic by 0.4 %.
  const auto bytes = [](std::size_t rank) {
    const Outcome outcome = simulate_text(
        fixed_cut(2) + Settings{"model.adapter.rank=" + std::to_string(rank), "run.chunk_size=4096"});
    return static_cast<double>(outcome.rounds[1].bytes_up);
  };
  const double one = bytes(1);
  const double eight = bytes(8);
  // Seven ranks of two blocks, for each of the clients.
  const SplitTexts texts;
  const SimulatedRun run(texts.directory.path(), kSplitModel + fixed_cut(2));
  const std::size_t rank = run.task->split_layout().below(2).count() / kSplitRank;
  CHECK(eight - one == doctest::Approx(static_cast<double>(7 * rank * 4 * kSplitClients)).epsilon(0.03));
}

TEST_CASE("split runs: a round takes the time of blocks, bytes, delays and the coordinator's queue") {
  // One sample a second for the whole model; the network takes no time.
  const Settings slow = {"simulation.device.samples_per_second=1", "simulation.network.up_mbps=1e9",
                         "simulation.network.down_mbps=1e9", "simulation.network.latency=0"};
  const double samples = 4 * 8;
  for (std::size_t cut = 1; cut <= kSplitBlocks; ++cut) {
    const Outcome outcome = simulate_text(fixed_cut(cut) + slow);
    CHECK(round_seconds(outcome, 1) ==
          doctest::Approx(samples * static_cast<double>(cut) / kSplitBlocks).epsilon(1e-3));
  }
  // Six latencies for the round's messages as in other runs, two for each of four pieces, and two for the
  // end.
  const Outcome far = simulate_text(fixed_cut(1) + slow + Settings{"simulation.network.latency=1"});
  CHECK(round_seconds(far, 1) == doctest::Approx(samples / kSplitBlocks + 6 + 4 * 2 + 2).epsilon(1e-3));
  // A coordinator that is as slow as a device serves one client after the other: all clients' samples, two
  // thirds of each; the first client's first part comes before, and its last after.
  const Outcome queue =
      simulate_text(fixed_cut(1) + slow + Settings{"simulation.coordinator.samples_per_second=1"});
  const double served = kSplitClients * samples * 2 / 3;
  CHECK(round_seconds(queue, 1) > served);
  CHECK(round_seconds(queue, 1) < served + samples / kSplitBlocks);
  const Outcome fast =
      simulate_text(fixed_cut(1) + slow + Settings{"simulation.coordinator.samples_per_second=1e9"});
  CHECK(round_seconds(fast, 1) == doctest::Approx(samples / kSplitBlocks).epsilon(1e-3));
}

TEST_CASE("split runs: clients that lose their connection or their power go on, or begin again") {
  const Settings unsteady = {"simulation.device.samples_per_second=20", "simulation.network.latency=0.05",
                             "simulation.dropout.probability=0.5", "simulation.dropout.offline_seconds=3",
                             "run.rounds=8"};
  const Settings random = kSplitRun + Settings{"strategy.planner.cut=random"};
  const Outcome split = simulate_text(random + unsteady);
  CHECK(split.rounds.size() == 8);
  CHECK(split.count("client.disconnected") + split.count("client.dropped") > 3);
  CHECK(split.hashes().back() != split.hashes().front());
}

TEST_CASE("split runs: what does not go together with split training is refused, with the reason") {
  CHECK(split_refusal(kSplitRun) == "accepted");
  const auto refused = [](const Settings& settings, const std::string& why) {
    const std::string message = split_refusal(kSplitRun + settings);
    CAPTURE(message);
    CHECK(message.find(why) != std::string::npos);
  };
  refused({"secure_aggregation.kind=exact"}, "activations");
  refused({"differential_privacy.kind=local", "differential_privacy.noise_multiplier=8",
           "differential_privacy.clipping_norm=1"},
          "activations");
  refused({"strategy.schedule.kind=buffered"}, "needs rounds");
  refused({"dissemination.kind=serverless"}, "needs a coordinator that runs a part of the model");
  refused({"training.partial_work=0.5"}, "partial_work = 0");
  refused({"simulation.attack.kind=sign_flip", "simulation.attack.fraction=0.2"},
          "hostile clients of split training are not simulated");
}

}  // namespace fedge::sim
