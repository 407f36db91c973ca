// `fedge-lab overlay` as a user starts it.
#include <doctest/doctest.h>

#include "tests/integration/run_program.h"

using fedge::test::Outcome;
using fedge::test::run;

TEST_CASE("overlay: the example of the help prints a table of three columns in 120 columns") {
  CHECK(run("fedge-lab overlay --help").output.find("--nodes 256 --rounds 60 --seeds 2") !=
        std::string::npos);
  const Outcome outcome = run("fedge-lab overlay --nodes 64 --rounds 20 --seeds 2");
  CHECK(outcome.code == 0);
  CHECK(outcome.output.find("chord                  pastry                kademlia") != std::string::npos);
  CHECK(outcome.output.find("success, %") != std::string::npos);
  std::size_t columns = 0;
  for (const char c : outcome.output) {
    columns = c == '\n' ? 0 : columns + ((static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1U : 0U);
    REQUIRE(columns <= 120);
  }
}

TEST_CASE("overlay: JSON carries every figure with its interval, and the runs' hashes") {
  const Outcome outcome =
      run("fedge-lab overlay --kind pastry --nodes 32 --rounds 12 --seeds 2 --static --format json");
  CHECK(outcome.code == 0);
  for (const char* part :
       {"{\"nodes\":32,\"rounds\":12,\"seeds\":2,", "\"kind\":\"pastry\"",
        "\"half_width\":", "\"success_percent\":{\"mean\":100", "\"useful_percent\":{\"mean\":null",
        "\"events_per_second\":", "\"trace_hashes\":[\""})
    CHECK(outcome.output.find(part) != std::string::npos);
}

TEST_CASE("overlay: a bad value gets one sentence that names the option and what would be right") {
  const Outcome alpha = run("fedge-lab overlay --alpha 0");
  CHECK(alpha.code == 1);
  CHECK(alpha.output == "fedge-lab: --alpha must be at least 1 and at most --k\n");
  const Outcome kind = run("fedge-lab overlay --kind can");
  CHECK(kind.code == 2);
  CHECK(kind.output.starts_with(
      "fedge-lab overlay: --kind: unknown value 'can'; expected one of chord, pastry, kademlia\n"));
  CHECK(run("fedge-lab overlay --nodes many").code == 2);
}

TEST_CASE("attack: a table of three columns in 120 columns, and JSON with every figure") {
  CHECK(run("fedge-lab attack --help").output.find("fedge-lab attack crowd --jobs 2") != std::string::npos);
  const std::string small = "fedge-lab attack poison --nodes 100 --rounds 12 --seeds 2";
  const Outcome outcome = run(small);
  CHECK(outcome.code == 0);
  CHECK(outcome.output.find("none                 opendht                     all") != std::string::npos);
  std::size_t columns = 0;
  for (const char c : outcome.output) {
    columns = c == '\n' ? 0 : columns + ((static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1U : 0U);
    REQUIRE(columns <= 120);
  }
  const Outcome json = run(small + " --jobs 2 --protect signatures --format json");
  CHECK(json.code == 0);
  for (const char* part :
       {"{\"attack\":\"poison\",\"nodes\":100,\"hostile\":0.2", "{\"protect\":\"signatures\"",
        "\"success_percent\":{\"mean\":", "\"kept_percent\":{\"mean\":null"})
    CHECK(json.output.find(part) != std::string::npos);
}

TEST_CASE("attack: a bad value gets one sentence that names it and what would be right") {
  const Outcome attack = run("fedge-lab attack flood");
  CHECK(attack.code == 2);
  CHECK(attack.output.starts_with(
      "fedge-lab attack: ATTACK: unknown value 'flood'; expected one of crowd, eclipse, poison, reflect\n"));
  CHECK(run("fedge-lab attack --protect ids,hope").output.find("--protect: unknown word \"hope\"") !=
        std::string::npos);
  CHECK(run("fedge-lab attack --hostile 1")
            .output.starts_with("fedge-lab attack: --hostile: must be 0 to 0.9, not 1\n"));
}
