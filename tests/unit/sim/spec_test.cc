#include "sim/spec.h"

#include <doctest/doctest.h>

using namespace fedge;

TEST_CASE("simulation spec: reads its section and passes over the others") {
  const auto document = config::parse_toml(
      "[run]\nrounds = 3\n[simulation]\nnetwork = { latency = 0.5, up_mbps = 2 }\ndropout.probability = "
      "0.25\n",
      "r.toml");
  REQUIRE(document);
  const auto spec = sim::read_simulation(*document);
  REQUIRE(spec);
  CHECK(spec->latency == seconds(0.5));
  CHECK(spec->up_mbps == 2.0);
  CHECK(spec->dropout_probability == 0.25);
  CHECK(spec->samples_per_second == 1000.0);
}

TEST_CASE("simulation spec: a misspelt key is named with file, line and suggestion") {
  const auto document = config::parse_toml("[simulation]\nnetwork = { latncy = 0.5 }\n", "r.toml");
  REQUIRE(document);
  const auto spec = sim::read_simulation(*document);
  REQUIRE(!spec);
  CHECK(spec.error().message ==
        "r.toml:2: unknown key simulation.network.latncy, did you mean simulation.network.latency?");
}
