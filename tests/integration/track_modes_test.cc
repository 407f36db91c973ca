// Several models in both modes: real daemons with separate state directories compute the same models as the
// simulation, for every track and round.
#include "tests/integration/track_programs.h"

using namespace fedge;
using test::TrackModels;
using test::TrackPrograms;

namespace {

const std::string kModesApart = R"({ kind = "bidirectional", clients = ["0"], against = ["3"] })";

}  // namespace

TEST_CASE("track modes: a share of the data that is kept out is the same in virtual time and over sockets") {
  const TrackPrograms programs;
  // With and without a second model; for some rounds and permanently; two fractions, of which the larger
  // counts.
  const std::string withheld =
      R"({ kind = "partial_data", clients = ["1"], withheld = 0.5 },)"
      R"({ kind = "partial_data", clients = ["0", "2"], withheld = 0.75, from_round = 2, until_round = 3 },)"
      R"({ kind = "partial_data", clients = ["2"], withheld = 0.25 })";
  std::string list;
  std::size_t tracks = 0;
  SUBCASE("of one model") { list = withheld, tracks = 1; }
  SUBCASE("of three models") { list = withheld + ", " + kModesApart, tracks = 3; }
  const TrackModels abstract = programs.models("abstract", list, "");
  CHECK(abstract.size() == 4 * tracks);
  CHECK(programs.models("concrete", list, "--mode concrete") == abstract);
  // Withheld data matters: without the first entry, the models differ from round 1 on.
  const TrackModels more_data = programs.models("more", list.substr(list.find("},") + 2), "");
  CHECK(more_data.at({1, {}}) != abstract.at({1, {}}));
  CHECK(more_data.at({4, {}}) != abstract.at({4, {}}));
}

TEST_CASE("track modes: what a daemon remembers of each track is what a simulated client does") {
  const TrackPrograms programs;
  std::string more;
  SUBCASE("control variates") { more = "--set strategy.kind=scaffold"; }
  SUBCASE("the error of compressed updates") {
    more = "--set compression.kind=top_k --set compression.fraction=0.05";
  }
  // One track runs all the time, one ends and returns, and one starts late as a branch of another.
  const std::string list = kModesApart +
                           R"(, { kind = "inbound", clients = ["1"], against = ["2"], from_round = 3 },)"
                           R"( { kind = "inbound", clients = ["2"], against = ["1"], until_round = 1 },)"
                           R"( { kind = "inbound", clients = ["2"], against = ["1"], from_round = 4 })";
  const TrackModels abstract = programs.models("abstract", list, more);
  CHECK(abstract.size() == 4 + 3 + 4 + 4);
  CHECK(programs.models("concrete", list, more + " --mode concrete") == abstract);
}
