// What operators see of a session of secure aggregation: its stage, and the members whose message it awaits.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/privacy/secure_session.h"

namespace fedge::privacy {
namespace {

bool awaits(const SecureServer::Progress& progress, ClientId client) {
  return std::ranges::find(progress.awaited, client) != progress.awaited.end();
}

}  // namespace

TEST_CASE("session progress: each message comes from a member that is awaited, and no longer is after it") {
  TestSession session(5, {.rules = {.min_survivors = 2}, .parameters = 3});
  std::set<std::string> stages;
  std::optional<ClientId> last;
  session.to_server = [&](ClientId from, TestSession::ToServer message) {
    const auto progress = session.server().progress();
    stages.insert(progress.stage);
    CHECK(awaits(progress, from));
    CHECK(std::ranges::is_sorted(progress.awaited));
    return std::optional(std::move(message));
  };
  const auto outcome = session.run();
  REQUIRE_FALSE(outcome.failure);
  CHECK(stages == std::set<std::string>{"keys", "shares", "consents", "unmasking"});
  CHECK(std::string(session.server().progress().stage) == "over");
  CHECK(session.server().progress().awaited.empty());
}

TEST_CASE("session progress: a silent member is awaited until the deadline, a disconnected one is not") {
  for (const bool links_break : {false, true}) {
    CAPTURE(links_break);
    const ClientId silent = TestSession::id(0);
    TestSession session(
        5,
        {.rules = {.min_survivors = 2}, .last = {Last::kKeys}, .parameters = 3, .links_break = links_break});
    std::size_t times = 0;
    session.to_server = [&](ClientId from, TestSession::ToServer message) {
      const auto progress = session.server().progress();
      // Its own keys came before.
      if (std::string(progress.stage) == "shares" && from != silent) {
        ++times;
        CHECK(awaits(progress, silent) != links_break);
      }
      if (std::string(progress.stage) == "consents") CHECK_FALSE(awaits(progress, silent));
      return std::optional(std::move(message));
    };
    REQUIRE_FALSE(session.run().failure);
    CHECK(times == 4);
  }
}

}  // namespace fedge::privacy
