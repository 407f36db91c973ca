// Clients that add noise to their updates, over TLS: they count their updates, whatever the coordinator
// believes.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "client/secure/private_releases.h"
#include "core/platform/files.h"
#include "tests/integration/federation.h"

namespace fedge::test {
namespace {

// Settings of a run whose updates have noise, or noise and masks.
std::vector<std::string> settings_of_either_kind() {
  std::vector<std::string> all = {"differential_privacy.noise_multiplier=1.0",
                                  "differential_privacy.max_participations=2"};
  const auto add = [&](std::vector<std::string> more) { all.insert(all.end(), more.begin(), more.end()); };
  SUBCASE("noised") { add({"differential_privacy.kind=local"}); }
  SUBCASE("noised and masked") {
    add({"differential_privacy.kind=distributed", "secure_aggregation.kind=exact",
         "secure_aggregation.min_clients=2"});
  }
  return all;
}

// Returns whether the client has sent exactly `count` updates in this run.
bool has_sent(const Federation& f, std::size_t daemon, std::uint32_t count) {
  const auto releases = client::PrivateReleases::read(f.state_of(daemon));
  REQUIRE(releases);
  const TaskId another{RoundNumber(99), TrackId()};
  return !releases->admit(f.run.id, another, count) && releases->admit(f.run.id, another, count + 1);
}

}  // namespace

TEST_CASE("private clients: each counts what it has sent, and masked updates as well") {
  Federation f(4, settings_of_either_kind());
  for (int i = 0; i < 4; ++i) f.add_client();
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 2);
  CHECK(f.rounds[1].clients_completed == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(has_sent(f, i, 2));
}

TEST_CASE("private clients: one that has told all it may of its data sends no more, and the rest goes on") {
  Federation f(4, settings_of_either_kind());
  for (int i = 0; i < 3; ++i) f.add_client();
  // The fourth client took part in this run before its coordinator was set up from scratch.
  const auto state = f.enrol("client-3");
  REQUIRE(write_file_atomic(state / "private-releases", std::to_string(f.run.id.value()) + " 1 2 2 0 7 1\n"));
  f.daemons.emplace_back();
  f.start_client(3);
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 2);
  CHECK(f.rounds[0].clients_completed == 3);
  CHECK(f.rounds[1].clients_completed == 3);
  CHECK(has_sent(f, 3, 2));
  CHECK(has_sent(f, 0, 2));
  CHECK(std::ranges::any_of(f.client_events, [](const std::string& event) {
    return event.find("has already sent 2 updates, the limit of differential_privacy.max_participations") !=
           std::string::npos;
  }));
}

}  // namespace fedge::test
