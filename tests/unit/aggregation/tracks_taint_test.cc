#include "aggregation/tracks/taint_ledger.h"

#include <doctest/doctest.h>

namespace fedge::aggregation {
namespace {

constexpr TrackId kCommon(0);
constexpr TrackId kOwn(1);
constexpr ClientId kA(0);
constexpr ClientId kB(1);
constexpr ClientId kC(2);

RoundNumber round(std::uint32_t number) { return RoundNumber(number); }

// All three clients train the common track in rounds 1 to 3, except b in round 3.
TaintLedger after_three_rounds() {
  TaintLedger ledger(3);
  ledger.start(kCommon);
  for (std::uint32_t r = 1; r <= 3; ++r)
    for (const ClientId client : {kA, kB, kC})
      if (client != kB || r < 3) ledger.contribute(kCommon, client, round(r));
  return ledger;
}

}  // namespace

TEST_CASE("taint: the initial model permits everybody, even those who exclude deeply") {
  TaintLedger ledger(3);
  ledger.start(kCommon);
  for (const ClientId client : {kA, kB, kC}) {
    CHECK(ledger.last(kCommon, client) == round(0));
    CHECK(ledger.permits(kCommon, client, round(1)));
  }
}

TEST_CASE("taint: an upload counts from its round on, for its track alone") {
  TaintLedger ledger(3);
  ledger.start(kCommon);
  ledger.start(kOwn);
  ledger.contribute(kCommon, kB, round(4));
  CHECK(ledger.last(kCommon, kB) == round(4));
  CHECK(ledger.last(kCommon, kA) == round(0));
  CHECK(ledger.last(kOwn, kB) == round(0));
  CHECK(ledger.permits(kCommon, kB, round(5)));
  CHECK(!ledger.permits(kCommon, kB, round(4)));
  CHECK(!ledger.permits(kCommon, kB, round(1)));
}

TEST_CASE("taint: uploads in any order, and one twice, leave the last round") {
  TaintLedger ledger(3);
  ledger.start(kCommon);
  for (const std::uint32_t r : {3U, 5U, 2U, 5U}) ledger.contribute(kCommon, kC, round(r));
  CHECK(ledger.last(kCommon, kC) == round(5));
}

TEST_CASE("taint: a track started from another carries what went into it, and parts from it then") {
  TaintLedger ledger = after_three_rounds();
  ledger.start(kOwn, kCommon);
  ledger.contribute(kCommon, kB, round(4));
  ledger.contribute(kOwn, kA, round(4));
  CHECK(ledger.last(kOwn, kB) == round(2));
  CHECK(ledger.last(kCommon, kB) == round(4));
  CHECK(ledger.last(kOwn, kA) == round(4));
  CHECK(ledger.last(kCommon, kA) == round(3));
}

TEST_CASE("taint: an exclusion that forgives the past accepts the common model, a deep one does not") {
  // a excludes b from round 4 on; the common model contains b's updates of rounds 1 and 2.
  TaintLedger ledger = after_three_rounds();
  ledger.start(kOwn, kCommon);
  CHECK(ledger.permits(kOwn, kB, round(4)));
  CHECK(!ledger.permits(kOwn, kB, round(1)));
  ledger.start(kOwn);
  CHECK(ledger.permits(kOwn, kB, round(1)));
  // With an exclusion from round 2 on, b's update of round 2 forbids the common model.
  CHECK(!ledger.permits(kCommon, kB, round(2)));
  CHECK(ledger.permits(kCommon, kB, round(3)));
}

TEST_CASE("taint: a chain of starts keeps what went in at its beginning") {
  TaintLedger ledger = after_three_rounds();
  ledger.start(kOwn, kCommon);
  ledger.start(TrackId(7), kOwn);
  ledger.retire(kCommon);
  ledger.retire(kOwn);
  CHECK(ledger.last(TrackId(7), kB) == round(2));
  CHECK(!ledger.permits(TrackId(7), kB, round(1)));
}

TEST_CASE("taint: a track that begins again from itself is unchanged, with the initial model untouched") {
  TaintLedger ledger = after_three_rounds();
  ledger.start(kCommon, kCommon);
  CHECK(ledger.last(kCommon, kB) == round(2));
  ledger.retire(kCommon);
  ledger.start(kCommon);
  CHECK(ledger.last(kCommon, kB) == round(0));
}

}  // namespace fedge::aggregation
