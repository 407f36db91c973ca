#include <doctest/doctest.h>

#include <map>

#include "core/rng.h"
#include "protocol/session/endpoint.h"
#include "server/access/join_limits.h"
#include "tests/support/at.h"

using namespace fedge;
using server::JoinAttempt;
using server::JoinLimits;
using server::JoinRates;
using server::RateLimiter;

namespace {

using fedge::test::at;

}  // namespace

TEST_CASE("rate limiter: so many in any minute, not so many in each calendar minute") {
  RateLimiter limiter(3, seconds(60));
  CHECK_FALSE(limiter.full("a", at(0)));
  CHECK_FALSE(limiter.count("a", at(50)));
  CHECK_FALSE(limiter.count("a", at(59)));
  CHECK_FALSE(limiter.full("a", at(59)));
  CHECK(limiter.count("a", at(61)));
  CHECK(limiter.full("a", at(109.9)));
  CHECK_FALSE(limiter.full("a", at(110)));  // the attempt at 50 is a minute old
  CHECK(limiter.count("a", at(110)));
  CHECK(limiter.full("a", at(118.9)));
  CHECK_FALSE(limiter.full("b", at(118.9)));
}

TEST_CASE("rate limiter: full() says what a list of all events says, over random times and keys") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RateLimiter limiter(4, seconds(10));
    std::map<std::string, std::vector<double>> all;
    double now = 0;
    for (int i = 0; i < 500; ++i) {
      now += rng.uniform() * 3;
      const std::string key(1, static_cast<char>('a' + static_cast<int>(rng.uniform() * 3)));
      std::size_t recent = 0;
      for (const double time : all[key]) recent += now - time < 10 ? 1 : 0;
      REQUIRE(limiter.full(key, at(now)) == (recent >= 4));
      if (recent >= 4) continue;
      all[key].push_back(now);
      limiter.count(key, at(now));
    }
  }
}

TEST_CASE("A6 row 36: rate limiter: remembers at most so many keys, and forgets the quietest first") {
  RateLimiter limiter(1, seconds(1e6), 100);
  for (int i = 0; i < 100; ++i) limiter.count(std::to_string(i), at(i));
  limiter.count("0", at(100));
  for (int i = 100; i < 100'000; ++i) {
    limiter.count(std::to_string(i), at(i));
    if (i % 50 == 0) limiter.count("0", at(i));
    REQUIRE(limiter.keys() <= 100);
  }
  CHECK(limiter.full("0", at(100'000)));
  CHECK(limiter.full("99999", at(100'000)));
  CHECK_FALSE(limiter.full("1", at(100'000)));
}

TEST_CASE("A1 row 36: join limits: after five wrong tokens in a minute an address is not listened to") {
  JoinLimits limits(JoinRates{});
  const JoinAttempt bad{"192.0.2.1", "wrong"};
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(limits.objection(bad, at(i)));
    CHECK(limits.wrong(bad, at(i)) == (i == 4));
  }
  const auto objection = limits.objection({"192.0.2.1", "the right one"}, at(30));
  REQUIRE(objection);
  CHECK(objection->error.code == ErrorCode::kResource);
  CHECK(objection->reached == nullptr);
  CHECK(objection->error.message ==
        "too many wrong join tokens came from this address; try again in a minute");
  CHECK_FALSE(limits.objection({"192.0.2.2", "wrong"}, at(30)));
  CHECK(limits.objection(bad, at(59.9)));
  CHECK_FALSE(limits.objection(bad, at(60)));
}

TEST_CASE(
    "A1 row 36: join limits: a hundred thousand guesses from one address: at most five a minute count") {
  JoinLimits limits(JoinRates{});
  std::size_t looked_at = 0;
  for (int i = 0; i < 100'000; ++i) {
    const JoinAttempt guess{"192.0.2.1", std::to_string(i)};
    const Time now = at(i * 0.01);  // over a thousand seconds
    if (limits.objection(guess, now)) continue;
    ++looked_at;
    limits.wrong(guess, now);
  }
  CHECK(looked_at == 85);  // ceil(1000 / 60) windows of five
}

TEST_CASE("A6 row 39: join limits: enrolments stop at the caps of address, token and hour, each by itself") {
  const JoinRates rates{
      .enrolments_per_hour = 6, .enrolments_per_hour_per_address = 2, .enrolments_per_hour_per_token = 3};
  JoinLimits limits(rates);
  const auto join = [&](const char* address, const char* token, double second) {
    const JoinAttempt attempt{address, token};
    if (const auto objection = limits.objection(attempt, at(second))) return objection->error.message;
    limits.enrolled(attempt, at(second));
    return std::string("joined");
  };
  CHECK(join("a", "x", 0) == "joined");
  CHECK(join("a", "x", 1) == "joined");
  CHECK(join("a", "y", 2) ==
        "too many clients joined from this address within the last hour; try again later");
  CHECK(join("b", "x", 3) == "joined");
  CHECK(join("c", "x", 4) == "too many clients joined with this token within the last hour; try again later");
  CHECK(join("b", "y", 5) == "joined");
  CHECK(join("c", "y", 6) == "joined");
  CHECK(join("d", "y", 7) == "joined");
  CHECK(join("e", "z", 8) == "too many clients joined within the last hour; try again later");
  CHECK(join("a", "z", 3600) == "joined");
}

TEST_CASE(
    "A6 row 39: join limits: a limit is named once an hour for each address and token that it refuses") {
  JoinLimits limits({.enrolments_per_hour = 4, .enrolments_per_hour_per_address = 1});
  const auto reached = [&](const char* address, double second) {
    const auto objection = limits.objection({address, "t"}, at(second));
    if (!objection) limits.enrolled({address, "t"}, at(second));
    return std::string(objection && objection->reached != nullptr ? objection->reached : "");
  };
  CHECK(reached("a", 0).empty());
  CHECK(reached("a", 1) == "limits.enrolments_per_hour_per_address");
  for (int i = 2; i < 1000; ++i) CHECK(reached("a", i).empty());
  CHECK(reached("b", 1000).empty());
  CHECK(reached("b", 1001) == "limits.enrolments_per_hour_per_address");
  CHECK(reached("c", 1002).empty());
  CHECK(reached("d", 1003).empty());
  CHECK(reached("e", 1004) == "limits.enrolments_per_hour");
  CHECK(reached("f", 1005).empty());
  for (const char* address : {"g", "h", "i"}) CHECK(reached(address, 4603).empty());  // joined
  CHECK(reached("j", 4603).empty());
  CHECK(reached("k", 4604) == "limits.enrolments_per_hour");
}

TEST_CASE("A6 row 39: join limits: ten thousand joins from one host with one token enrol a thousand") {
  JoinLimits limits(JoinRates{});
  std::size_t joined = 0;
  for (int i = 0; i < 10'000; ++i) {
    const JoinAttempt attempt{"192.0.2.1", "token"};
    if (limits.objection(attempt, at(i * 0.1))) continue;
    limits.enrolled(attempt, at(i * 0.1));
    ++joined;
  }
  CHECK(joined == 1000);
}

TEST_CASE("A6 row 39: household: an IPv6 /64 is one, an IPv4 address in IPv6 clothes is itself") {
  using protocol::household;
  CHECK(household("192.0.2.1") == "192.0.2.1");
  CHECK(household("::ffff:192.0.2.1") == "192.0.2.1");
  CHECK(household("2001:db8:1:2:3:4:5:6") == household("2001:db8:1:2:ffff::1"));
  CHECK(household("2001:db8:1:2::1") != household("2001:db8:1:3::1"));
  CHECK(household("fe80::1%lo") == household("fe80::2"));
  CHECK(household("nonsense") == "nonsense");
}
