#include "server/access/message_allowance.h"

#include <doctest/doctest.h>

#include "tests/support/at.h"

using namespace fedge;
using namespace fedge::server;

namespace {

constexpr ClientId kOne(1);
constexpr ClientId kOther(2);
using fedge::test::at;

int answers(MessageAllowance& allowance, ClientId client, int tries = 100'000) {
  int heard = 0;
  for (int i = 0; i < tries; ++i)
    if (allowance.answer(client)) ++heard;
  return heard;
}

}  // namespace

TEST_CASE("A6 row 56: message allowance: a flood is heard as often as it was asked, and no more") {
  MessageAllowance allowance(seconds(1), 0);
  CHECK(answers(allowance, kOne) == 0);
  allowance.connected(kOne);
  CHECK(answers(allowance, kOne) == 4);
  allowance.connected(kOne);
  allowance.asked(kOne);
  CHECK(answers(allowance, kOther) == 0);
  CHECK(answers(allowance, kOne) == 8);
}

TEST_CASE("A6 row 56: message allowance: who is asked a thousand times and silent saves up sixteen") {
  MessageAllowance allowance(seconds(1), 0);
  for (int i = 0; i < 1000; ++i) allowance.asked(kOne);
  CHECK(answers(allowance, kOne) == 16);
}

TEST_CASE("message allowance: an honest client is heard, however fast and for however long it works") {
  MessageAllowance allowance(seconds(1), 0);
  for (int connection = 0; connection < 100; ++connection) {
    allowance.connected(kOne);
    REQUIRE(allowance.answer(kOne));  // the answer "ready"
    for (int task = 0; task < 1000; ++task) {
      allowance.asked(kOne);
      REQUIRE(allowance.answer(kOne));                      // an offer
      if (task % 10 == 0) REQUIRE(allowance.answer(kOne));  // an offer that fails
    }
  }
}

TEST_CASE("A6 row 56: message allowance: records at twice the rate asked for, after sixteen at once") {
  MessageAllowance allowance(seconds(10), 0);
  int heard = 0;
  for (int i = 0; i < 60'000; ++i)  // a hundred a second, for ten minutes
    if (allowance.record(kOne, at(i * 0.01))) ++heard;
  CHECK(heard == 16 + 119);
  CHECK(allowance.record(kOther, at(600)));
}

TEST_CASE("A6: message allowance: on each connection a client may ask for each part of a tokenizer once") {
  MessageAllowance allowance(seconds(1), 3);
  const auto heard = [&](ClientId client) {
    int parts = 0;
    while (parts < 100 && allowance.part(client)) ++parts;
    return parts;
  };
  CHECK(heard(kOne) == 0);
  allowance.connected(kOne);
  CHECK(heard(kOne) == 3);
  CHECK(heard(kOther) == 0);
  CHECK(answers(allowance, kOne) == 4);  // of others, it has as many as before
  allowance.connected(kOne);
  allowance.connected(kOne);
  CHECK(heard(kOne) == 3);
}
