// `fedge-lab swarm` as a user starts it.
#include <doctest/doctest.h>

#include "tests/integration/run_program.h"

using fedge::test::Outcome;
using fedge::test::run;

TEST_CASE("swarm: the example of the help prints a table in 120 columns") {
  CHECK(run("fedge-lab swarm --help").output.find("--nodes 25 --chunks 40 --seeds 2") != std::string::npos);
  const Outcome outcome = run("fedge-lab swarm --nodes 25 --chunks 40 --seeds 2");
  CHECK(outcome.code == 0);
  for (const char* part :
       {"25 clients, 40 chunks each, 10 neighbours, warm-up all, greedy_fastest_first", "warm-up, slots",
        "sequence: ASR, best observer, %", "reconstructed updates, mean"})
    CHECK(outcome.output.find(part) != std::string::npos);
  std::size_t columns = 0;
  for (const char c : outcome.output) {
    columns = c == '\n' ? 0 : columns + ((static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1U : 0U);
    REQUIRE(columns <= 120);
  }
}

TEST_CASE("swarm: JSON carries every figure with its interval, and logs that jobs do not change") {
  const std::string command =
      "fedge-lab swarm --nodes 25 --chunks 40 --seeds 3 --attack sequence --coalition 5 --max-flow 4 "
      "--warmup pre-round,gating --format json --jobs ";
  const Outcome one = run(command + "1");
  CHECK(one.code == 0);
  for (const char* part : {"{\"nodes\":25,\"chunks\":40,\"degree\":10,\"scheduler\":\"greedy_fastest_first\"",
                           "\"warmup\":\"pre-round,gating\",\"relayed_spray\":false,\"blended\":false,\"k_"
                           "mode\":\"per_universe\"",
                           "\"deadlock\":null", "\"failed_open\":[]",
                           "\"asr_sequence_max_percent\":{\"mean\":", "\"coalition_5_sequence_any_percent\"",
                           "\"flow_percent\":{\"mean\":", "\"slots_per_second\":"})
    CHECK(one.output.find(part) != std::string::npos);
  CHECK(one.output.find("asr_count") == std::string::npos);
  const Outcome three = run(command + "3");
  const auto hashes = [](const Outcome& outcome) {
    return outcome.output.substr(outcome.output.find("\"log_hashes\""));
  };
  CHECK(hashes(one) == hashes(three));
}

TEST_CASE("swarm: what daemons do can be looked at, as the help's example says") {
  const std::string options = "--relayed-spray --blended --warmup-only";
  CHECK(run("fedge-lab swarm --help").output.find(options) != std::string::npos);
  const Outcome outcome = run("fedge-lab swarm --nodes 30 --chunks 40 --seeds 2 --format json " + options);
  CHECK(outcome.code == 0);
  CHECK(outcome.output.find("\"relayed_spray\":true,\"blended\":true") != std::string::npos);
  CHECK(outcome.output.find("\"asr_elimination_mean_percent\"") != std::string::npos);
  CHECK(outcome.output.find("\"failed_open\":[]") != std::string::npos);
}

TEST_CASE("swarm: a deadlock that owners are let out of is said, and one that they are not is refused") {
  const std::string small = "fedge-lab swarm --nodes 25 --chunks 40 --seeds 2 --spray-ratio 0 --attack none";
  const Outcome refused = run(small);
  CHECK(refused.code == 1);
  CHECK(refused.output.find("fedge-lab: --threshold is out of reach: k = 100 is more than kappa + sigma (n - "
                            "1) = 1 + 0 * 24 = 1") == 0);
  CHECK(refused.output.ends_with("; raise spray-ratio, lower threshold, or set owner-fallback\n"));
  const Outcome helped = run(small + " --owner-fallback 2");
  CHECK(helped.code == 0);
  CHECK(helped.output.find("Owners had to send in spite of the gate") != std::string::npos);
}

TEST_CASE("swarm: a bad value gets one sentence that names the option and what would be right") {
  const auto says = [](const std::string& arguments, const std::string& text) {
    const Outcome outcome = run("fedge-lab swarm " + arguments);
    CHECK(outcome.code == 1);
    CHECK(outcome.output == "fedge-lab: --" + text + "\n");
  };
  says("--owner-fallback soon", "owner-fallback must be never or a number of slots, not 'soon'");
  says("--warmup lags,all",
       "warmup must be none, all, or some of pre-round, lags, gating and non-owner-first, joined by commas; "
       "not "
       "'all'");
  says("--nodes 2", "nodes must be 3 to 5000");
  const auto refuses = [](const std::string& arguments, const std::string& text) {
    const Outcome outcome = run("fedge-lab swarm " + arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.output.starts_with("fedge-lab swarm: --" + text + "\n"));
  };
  refuses("--k-mode both", "k-mode: unknown value 'both'; expected one of per_update, per_universe, split");
  refuses("--chunk-order rarst", "chunk-order: unknown value 'rarst'; did you mean 'rarest'?");
  refuses("--attack sequenc", "attack: unknown value 'sequenc'; did you mean 'sequence'?");
  CHECK(run("fedge-lab swarm --up 7").code == 2);
}
