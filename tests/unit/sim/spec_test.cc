#include "sim/spec.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

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

TEST_CASE("simulation spec: availability is read, and keys of another kind are refused") {
  const auto read = [](const std::string& keys) {
    const auto document = config::parse_toml("[simulation.availability]\n" + keys, "r.toml");
    REQUIRE(document);
    return sim::read_simulation(*document);
  };
  const auto spec = read("kind = \"common_shock\"\na = 0.8\ngroups = 4\nslot_seconds = 30\n");
  REQUIRE(spec);
  CHECK(spec->availability.kind == sim::AvailabilityKind::kCommonShock);
  CHECK(spec->availability.a == 0.8);
  CHECK(spec->availability.z == 0.7);
  CHECK(spec->availability.groups == 4);
  CHECK(spec->availability.slot == seconds(30));
  for (const auto& [keys, message] : std::vector<std::pair<std::string, std::string>>{
           {"kind = \"diurnal\"\np_up_down = 0.5\n",
            "r.toml:3: simulation.availability.p_up_down: belongs to kind \"gilbert_elliott\"; kind is "
            "\"diurnal\""},
           {"z = 0.5\n",
            "r.toml:2: simulation.availability.z: belongs to kind \"common_shock\"; kind is \"always\""},
           {"kind = \"trace\"\n",
            "r.toml: simulation.availability.file: is missing: kind \"trace\" needs one"},
           {"kind = \"diurnal\"\nhours = [1, 2]\n",
            "r.toml:3: simulation.availability.hours: has 2 numbers instead of 24"},
           {"kind = \"diurnal\"\nup_longest_seconds = 60\n",
            "r.toml:3: simulation.availability.up_longest_seconds: is shorter than half of the intervals, "
            "whose "
            "median is e^mu = 157.590516 seconds"}}) {
    const auto refused = read(keys);
    REQUIRE_MESSAGE(!refused, message);
    CHECK(refused.error().message == message);
  }
}
