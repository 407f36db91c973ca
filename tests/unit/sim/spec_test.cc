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
            "r.toml:1: simulation.availability.file: is missing; kind \"trace\" needs a trace file"},
           {"kind = \"diurnal\"\nhours = [1, 2]\n",
            "r.toml:3: simulation.availability.hours: has 2 numbers; expected 24"},
           {"kind = \"diurnal\"\nup_longest_seconds = 60\n",
            "r.toml:3: simulation.availability.up_longest_seconds: is below the median length of the "
            "intervals, e^mu = 157.590516 seconds"}}) {
    const auto refused = read(keys);
    REQUIRE_MESSAGE(!refused, message);
    CHECK(refused.error().message == message);
  }
}

TEST_CASE("simulation spec: a directory is read, what needs an overlay says so, and a run that needs one") {
  const auto read = [](const std::string& keys) {
    const auto document = config::parse_toml("[simulation.directory]\n" + keys, "r.toml");
    REQUIRE(document);
    return sim::read_simulation(*document);
  };
  const auto spec = read("kind = \"pastry\"\nloss = 0.1\nreplication = 5\n");
  REQUIRE(spec);
  CHECK(spec->directory.kind == sim::DirectorySpec::Kind::kOverlay);
  CHECK(spec->directory.overlay.kind == dht::OverlayKind::kPastry);
  CHECK(spec->directory.overlay.loss == 0.1);
  CHECK(spec->directory.overlay.replication == 5);
  const auto refused = read("kind = \"memory\"\nloss = 0.1\n");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "r.toml:3: simulation.directory.loss: has no effect unless simulation.directory.kind is \"chord\", "
        "\"pastry\" or \"kademlia\"");
  run::RunConfig config;
  config.status = {.every = seconds(10), .via = protocol::StatusSpec::Via::kDirectory};
  const auto none = sim::check_directory({}, config);
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("set simulation.directory.kind") != std::string::npos);
  CHECK(sim::check_directory(*spec, config));
}
