// Several models side by side in both modes: real daemons, each with its own state directory, come to the
// models of the simulation, for every track and every round.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/report/metrics.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using test::Outcome;
using test::TemporaryDirectory;

namespace {

// The model's hash by round and by whom the track excludes.
using Models = std::map<std::pair<std::uint64_t, std::vector<std::string>>, std::string>;

struct Programs {
  TemporaryDirectory data;
  TemporaryDirectory out;
  Programs() { test::write_tiny_dataset(data); }
  // Four clients, all of them in each of four rounds; a policy with this list of disagreements.
  Models models(const std::string& name, const std::string& disagreements, const std::string& more) const {
    const auto directory = out.path() / name;
    const Outcome outcome =
        test::run("fedge-sim run " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=" +
                  data.path().string() +
                  " --set data.partition.clients=4 --set sampling.clients_per_round=4 --set run.rounds=4 "
                  "--set model.hidden=[20] --set 'tracks.disagreement=[" +
                  disagreements + "]' " + more + " --out " + directory.string());
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    const auto rounds = server::read_metrics(directory / "metrics.jsonl");
    REQUIRE(rounds);
    REQUIRE(rounds->size() == 4);
    Models models;
    for (const auto& round : *rounds)
      for (const auto& track : round.tracks) models[{round.round, track.track.exclude}] = track.model_hash;
    return models;
  }
};

const std::string kApart = R"({ kind = "bidirectional", clients = ["0"], against = ["3"] })";

}  // namespace

TEST_CASE("track modes: a share of the data that is kept out is the same in virtual time and over sockets") {
  const Programs programs;
  // Alone and beside another model; for some rounds and for ever; two shares of which the larger counts.
  const std::string withheld =
      R"({ kind = "partial_data", clients = ["1"], withheld = 0.5 },)"
      R"({ kind = "partial_data", clients = ["0", "2"], withheld = 0.75, from_round = 2, until_round = 3 },)"
      R"({ kind = "partial_data", clients = ["2"], withheld = 0.25 })";
  std::string list;
  std::size_t tracks = 0;
  SUBCASE("of one model") { list = withheld, tracks = 1; }
  SUBCASE("of three models") { list = withheld + ", " + kApart, tracks = 3; }
  const Models abstract = programs.models("abstract", list, "");
  CHECK(abstract.size() == 4 * tracks);
  CHECK(programs.models("concrete", list, "--mode concrete") == abstract);
  // It matters, from the first round on and where there is more of it.
  const std::string others = list.substr(list.find("},") + 2);
  const Models more_data = programs.models("more", others, "");
  CHECK(more_data.at({1, {}}) != abstract.at({1, {}}));
  CHECK(more_data.at({4, {}}) != abstract.at({4, {}}));
}

TEST_CASE("track modes: what a daemon remembers of each track is what a simulated client does") {
  const Programs programs;
  std::string more;
  SUBCASE("control variates") { more = "--set strategy.kind=scaffold"; }
  SUBCASE("the error of compressed updates") {
    more = "--set compression.kind=top_k --set compression.fraction=0.05";
  }
  // One track goes on all the time, one ends and comes again, one begins late as a branch of another.
  const std::string list = kApart +
                           R"(, { kind = "inbound", clients = ["1"], against = ["2"], from_round = 3 },)"
                           R"( { kind = "inbound", clients = ["2"], against = ["1"], until_round = 1 },)"
                           R"( { kind = "inbound", clients = ["2"], against = ["1"], from_round = 4 })";
  const Models abstract = programs.models("abstract", list, more);
  CHECK(abstract.size() == 4 + 3 + 4 + 4);
  CHECK(programs.models("concrete", list, more + " --mode concrete") == abstract);
}
