#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/secure_targets.h"

using namespace fedge;

TEST_CASE("fuzz target: parties that nobody disturbs come to their sum") {
  fuzz::SecureParties parties;
  parties.start();
  while (!parties.wire.empty()) parties.deliver();
  REQUIRE(parties.to_be_summed());
  parties.sum(0xff);
  while (!parties.wire.empty()) parties.deliver();
  CHECK(parties.has_sum());
}

TEST_CASE("fuzz corpus: no recorded script of a session gets both shares of a member, or a wrong sum") {
  CHECK(fuzz::replay("secure_session", fuzz::feed_secure_session, fuzz::Cuts::kNone) >= 17);
}
