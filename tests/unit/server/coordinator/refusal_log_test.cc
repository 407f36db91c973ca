#include "server/coordinator/refusal_log.h"

#include <doctest/doctest.h>

#include "server/coordinator/connect_rate.h"
#include "server/enrolment.h"
#include "tests/support/at.h"

using namespace fedge;
using namespace fedge::server;

namespace {

using fedge::test::at;

}  // namespace

TEST_CASE("A6 row 34: refusals: one event an address and minute, which says how many went unsaid") {
  RefusalLog log;
  const auto first = log.note("192.0.2.7", "192.0.2.7:1000", "not TLS", at(100));
  REQUIRE(first);
  CHECK(to_string(*first) == R"(client.refused address="192.0.2.7:1000" reason="not TLS")");
  for (int i = 0; i < 500; ++i)
    CHECK_FALSE(log.note("192.0.2.7", "192.0.2.7:2", "not TLS", at(100 + i * 0.1)));
  CHECK(log.note("192.0.2.8", "192.0.2.8:1", "not TLS", at(120)));
  const auto second = log.note("192.0.2.7", "192.0.2.7:3", "no key", at(160));
  REQUIRE(second);
  CHECK(to_string(*second) == R"(client.refused address="192.0.2.7:3" reason="no key" suppressed=500)");
  const auto third = log.note("192.0.2.7", "192.0.2.7:4", "no key", at(220));
  REQUIRE(third);
  CHECK(to_string(*third) == R"(client.refused address="192.0.2.7:4" reason="no key")");
}

TEST_CASE("refusals: a client that must wait for the enrolment book is no warning, and hides none") {
  RefusalLog log;
  const auto busy = log.note("192.0.2.7", "192.0.2.7:1000", kBookBusy, at(100));
  REQUIRE(busy);
  CHECK(busy->severity == Severity::kDebug);
  const auto refused = log.note("192.0.2.7", "192.0.2.7:1000", "not TLS", at(101));
  REQUIRE(refused);
  CHECK(refused->severity == Severity::kWarning);
}

TEST_CASE("A6 row 56: refusals: beyond 1024 addresses in a minute all others count as one") {
  RefusalLog log;
  std::size_t said = 0;
  for (int i = 0; i < 100'000; ++i)
    if (log.note("address " + std::to_string(i), "a", "r", at(10))) ++said;
  CHECK(said == 1025);
  CHECK(log.note("a new one", "a", "r", at(70)));
}

TEST_CASE("A6 row 57: connect rate: three at once, then one each two seconds, and the others' own") {
  ConnectRate rate(3, seconds(2));
  for (int i = 0; i < 3; ++i) CHECK(rate.allow(ClientId(1), at(50)));
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(rate.allow(ClientId(1), at(50 + i * 0.0019)));
  CHECK(rate.allow(ClientId(2), at(51)));
  CHECK(rate.allow(ClientId(1), at(52)));
  CHECK_FALSE(rate.allow(ClientId(1), at(52)));
  int allowed = 0;
  for (int i = 0; i < 600; ++i)
    if (rate.allow(ClientId(1), at(52.05 + i * 0.1))) ++allowed;  // ten tries a second for a minute
  CHECK(allowed == 29);
  for (int i = 0; i < 3; ++i) CHECK(rate.allow(ClientId(1), at(1000)));
  CHECK_FALSE(rate.allow(ClientId(1), at(1000)));
}
