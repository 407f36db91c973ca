// Runs that end in the middle and continue in another process: models, rounds and events are those of a run
// that was never interrupted.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/rng.h"
#include "sim/checkpoint/checkpoints.h"
#include "tests/unit/sim/run_kinds.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

const Settings kInterrupted = {"run.rounds=5", "simulation.device.sigma=1", "simulation.network.sigma=1"};

// Kills the run again and again, each time later, and continues it until it ends. Returns the last process's
// outcome, and how many processes there were.
struct Continued {
  Outcome outcome;
  std::vector<std::uint64_t> begun_after;
};
Continued kill_and_continue(const std::filesystem::path& data, const Settings& settings, std::uint64_t calls,
                            Rng& rng, SimulateOptions options = {}) {
  const test::TemporaryDirectory directory;
  options.checkpoints = directory.path() / "checkpoint";
  Continued continued;
  for (std::uint64_t at = 1 + rng.below(calls); at < calls; at += 1 + rng.below(calls / 2)) {
    options.kill_after = at;
    const Outcome killed = SimulatedRun(data, settings, options).run();
    CHECK(killed.calls == at);
    continued.begun_after.push_back(killed.begun_after);
  }
  options.kill_after = 0;
  continued.outcome = SimulatedRun(data, settings, options).run();
  continued.begun_after.push_back(continued.outcome.begun_after);
  return continued;
}

// Compares all but the wall time.
void check_rounds(const Outcome& whole, const Outcome& last) {
  REQUIRE(last.rounds.size() == whole.rounds.size() - last.begun_after);
  for (std::size_t i = 0; i < last.rounds.size(); ++i) {
    CHECK(without_wall(last.rounds[i]) == without_wall(whole.rounds[last.begun_after + i]));
    CHECK(last.models[1 + i] == whole.models[1 + last.begun_after + i]);
  }
}

}  // namespace

TEST_CASE("checkpoints: a killed run continues to the same models, rounds and events") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  Rng rng(44);
  for (const RunKind& kind : kRunKinds) {
    CAPTURE(kind.name);
    const Settings settings = kInterrupted + kind.settings;
    const Outcome whole = SimulatedRun(data.path(), settings).run();
    CHECK((whole.hashes().front() == whole.hashes().back()) == (kind.name == "refused updates"));
    std::uint64_t later = 0;  // processes that began after a round
    for (int repetition = 0; repetition < 4; ++repetition) {
      const Continued continued = kill_and_continue(data.path(), settings, whole.calls, rng);
      check_rounds(whole, continued.outcome);
      CHECK(continued.outcome.events == whole.events);
      CHECK(continued.outcome.seconds == whole.seconds);
      CHECK(continued.outcome.calls == whole.calls);
      CHECK(std::ranges::is_sorted(continued.begun_after));
      for (const std::uint64_t after : continued.begun_after) later += after > 0 ? 1 : 0;
    }
    CHECK(later > 0);
  }
}

TEST_CASE("checkpoints: what clients keep is continued with any number of threads and any memory") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const Settings settings = kInterrupted + kComeAndGo + Settings{"strategy.kind=scaffold", "run.rounds=8"};
  const Outcome whole = SimulatedRun(data.path(), settings).run();
  Rng rng(45);
  for (const std::size_t threads : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
    for (const bool in_memory : {true, false}) {
      const Outcome last = kill_and_continue(data.path(), settings, whole.calls, rng,
                                             {.threads = threads, .spill = in_memory ? "" : data.path()})
                               .outcome;
      CHECK(last.hashes().back() == whole.hashes().back());
      CHECK(last.events == whole.events);
    }
}

TEST_CASE("checkpoints: another program or another run does not continue, and no time, no checkpoint") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const test::TemporaryDirectory directory;
  SimulateOptions options{.checkpoints = directory.path() / "checkpoint",
                          .checkpoint_every = std::chrono::hours(1),
                          .kill_after = 250};
  CHECK(SimulatedRun(data.path(), kInterrupted, options).run().rounds.size() > 1);
  CHECK_FALSE(std::filesystem::exists(options.checkpoints / "checkpoint"));
  options.checkpoint_every = std::chrono::seconds(0);
  CHECK(SimulatedRun(data.path(), kInterrupted, options).run().begun_after == 0);
  REQUIRE(std::filesystem::exists(options.checkpoints / "checkpoint"));
  const std::string file = (options.checkpoints / "checkpoint").string();
  SimulateOptions newer = options;
  newer.program = "fedge-test 2";
  CHECK(
      SimulatedRun(data.path(), kInterrupted, newer).try_run().failure->message ==
      file +
          ": was written by fedge-test 1, and this is fedge-test 2; continue with that program, or start the "
          "run again with --force");
  const Settings other = kInterrupted + Settings{"run.rounds=6"};
  CHECK(SimulatedRun(data.path(), other, options).try_run().failure->message ==
        file + ": belongs to another run; --force starts the run from the beginning");
  CHECK(SimulatedRun(data.path(), kInterrupted, options).run().begun_after > 0);
}

}  // namespace fedge::sim
