// Secure aggregation with dropouts: the sum of the survivors equals the plain sum for any dropouts at any
// step; with too few survivors there is no sum.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/privacy/secure_session.h"

namespace fedge::privacy {
namespace {

// Counts the members that reach at least this step.
std::size_t reach(const std::vector<Last>& last, Last step) {
  return static_cast<std::size_t>(std::ranges::count_if(last, [&](Last l) { return l >= step; }));
}

// Whether figure 4 of the paper predicts a sum for this pattern in a complete graph.
bool comes_to_an_end(const std::vector<Last>& last, std::size_t least) {
  const std::size_t advertised = reach(last, Last::kKeys);
  if (advertised < least) return false;
  const std::size_t threshold = std::max<std::size_t>(2 * advertised / 3 + 1, least);
  for (const Last step : {Last::kShares, Last::kMasked, Last::kConsent, Last::kAll})
    if (reach(last, step) < (step >= Last::kConsent ? 2 * advertised / 3 + 1 : threshold)) return false;
  return true;
}

struct Tally {
  std::size_t ended = 0;
  std::size_t aborted = 0;
};

void check_pattern(const std::vector<Last>& last, bool links_break, Tally& tally) {
  TestSession session(
      static_cast<std::uint32_t>(last.size()),
      {.rules = {.min_survivors = 2}, .last = last, .parameters = 3, .links_break = links_break});
  const auto outcome = session.run();
  const bool ends = comes_to_an_end(last, 2);
  CHECK(ends == !outcome.failure.has_value());
  if (!ends) {
    CHECK(outcome.sums.empty());
    CHECK(outcome.failure.value_or(invalid("")).code == ErrorCode::kUnavailable);
    ++tally.aborted;
    return;
  }
  ++tally.ended;
  CHECK(outcome.survivors.size() == reach(last, Last::kMasked));
  check_sum(session, outcome);
}

// Checks all patterns in which member 0 does `of_first`.
Tally check_all(std::size_t members, Last of_first, bool links_break) {
  Tally tally;
  std::vector<Last> last(members, of_first);
  std::size_t patterns = 1;
  for (std::size_t i = 1; i < members; ++i) patterns *= kLasts;
  for (std::size_t pattern = 0; pattern < patterns; ++pattern) {
    std::size_t rest = pattern;
    for (std::size_t i = 1; i < members; ++i, rest /= kLasts) last[i] = static_cast<Last>(rest % kLasts);
    check_pattern(last, links_break, tally);
  }
  return tally;
}

}  // namespace

TEST_CASE(
    "secure aggregation: four members, every pattern of who drops out when, seen at once or waited for") {
  Tally sum;
  for (std::size_t first = 0; first < kLasts; ++first) {
    const Tally tally = check_all(4, static_cast<Last>(first), first % 2 == 0);
    sum.ended += tally.ended;
    sum.aborted += tally.aborted;
  }
  CHECK(sum.ended + sum.aborted == 1296);
  CHECK(sum.ended > 0);
}

// One test case for each last step of the first member, so that CTest runs them in parallel.
TEST_CASE("secure aggregation: five members, every pattern in which the first says nothing") {
  CHECK(check_all(5, Last::kNothing, true).ended > 0);
}
TEST_CASE("secure aggregation: five members, every pattern in which the first is gone after its keys") {
  CHECK(check_all(5, Last::kKeys, false).ended > 0);
}
TEST_CASE("secure aggregation: five members, every pattern in which the first is gone after its shares") {
  CHECK(check_all(5, Last::kShares, true).ended > 0);
}
TEST_CASE("secure aggregation: five members, every pattern in which the first is gone after its update") {
  CHECK(check_all(5, Last::kMasked, false).ended > 0);
}
TEST_CASE("secure aggregation: five members, every pattern in which the first is gone after its consent") {
  CHECK(check_all(5, Last::kConsent, true).ended > 0);
}
TEST_CASE("secure aggregation: five members, every pattern in which the first stays to the end") {
  CHECK(check_all(5, Last::kAll, false).ended > 0);
}

TEST_CASE("secure aggregation: a hundred members, a random tenth dropping out anywhere, both graphs") {
  for (const std::uint32_t complete_below : {80U, 101U}) {
    Rng rng(complete_below);
    for (int trial = 0; trial < 3; ++trial) {
      std::vector<Last> last(100, Last::kAll);
      for (int i = 0; i < 10; ++i) last[rng.below(100)] = static_cast<Last>(rng.below(kLasts));
      TestSession session(
          100, {.rules = {.assumptions = {.corrupt = .1, .dropout = .1}, .complete_below = complete_below},
                .last = last,
                .parameters = 200});
      const auto outcome = session.run();
      REQUIRE_FALSE(outcome.failure);
      CHECK(outcome.survivors.size() == reach(last, Last::kMasked));
      CHECK(session.server().graph().complete == (complete_below > 100));
      check_sum(session, outcome);
    }
  }
}

TEST_CASE("secure aggregation: masks of ChaCha20 where somebody has no instructions for AES") {
  TestSession session(5, {.last = {Last::kAll, Last::kShares}, .slow_aes = {TestSession::id(3)}});
  bool told = false;
  session.to_client = [&](ClientId, TestSession::ToClient message) {
    if (const auto* roster = std::get_if<protocol::SecureRoster>(&message))
      told = roster->cipher == StreamCipher::kChaCha20;
    return std::optional(message);
  };
  const auto outcome = session.run();
  REQUIRE_FALSE(outcome.failure);
  CHECK(told);
  CHECK(outcome.survivors.size() == 4);
  check_sum(session, outcome);
}

TEST_CASE(
    "secure aggregation: partial updates: each parameter's sum and weight, and what too few train is left "
    "out") {
  // Ten of every fifteen members train the first part and ten the second; only two members in all train the
  // third.
  for (const std::uint32_t members : {15U, 120U}) {
    std::vector<Coverage> trained;
    for (std::uint32_t i = 0; i < members; ++i) {
      std::vector<Range> ranges;
      if (i % 15 < 10) ranges.push_back({0, 20});
      if (i % 15 >= 5) ranges.push_back({20, 33});
      if (i < 2) ranges.push_back({40, 50});
      trained.push_back(Coverage::of(ranges));
    }
    TestSession session(
        members, {.rules = {.assumptions = {.corrupt = .05, .dropout = .1}},
                  .last = {Last::kAll, Last::kShares, Last::kAll, Last::kMasked, Last::kAll, Last::kKeys},
                  .trained = trained});
    const auto outcome = session.run();
    INFO((outcome.failure ? outcome.failure->message : std::string()));
    REQUIRE_FALSE(outcome.failure);
    CHECK(session.server().graph().complete == (members < 100));
    CHECK(session.server().left_out() == 10);
    CHECK(session.server().cells() == std::vector<Range>{{0, 20}, {20, 33}});
    CHECK(outcome.survivors.size() == members - 2);
    check_sum(session, outcome, trained);
  }
}

TEST_CASE("secure aggregation: who trains nothing that others train takes no part") {
  std::vector<Coverage> trained(6, Coverage::of({{0, 30}}));
  trained[2] = Coverage::of({{30, 40}});
  TestSession session(6, {.rules = {.min_survivors = 3}, .trained = trained});
  const auto outcome = session.run();
  REQUIRE_FALSE(outcome.failure);
  REQUIRE(outcome.excluded.contains(TestSession::id(2)));
  CHECK(outcome.excluded.at(TestSession::id(2)) == "too few other clients train the same part of the model");
  CHECK(outcome.survivors.size() == 5);
  check_sum(session, outcome, trained);
}

}  // namespace fedge::privacy
