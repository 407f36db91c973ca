// AW-PSP's rules about freshness, probation and labels.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <vector>

#include "aggregation/samplers/awpsp/aw_psp.h"
#include "tests/unit/aggregation/samplers/awpsp_rounds.h"
#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
using namespace test;

TEST_CASE("aw_psp: an undelivered task does not make a client fresh, five in a row count as a delivery") {
  AwPspOptions options = plain_psp();
  options.b = 1;
  AwPspSampler sampler(options);
  // In every round, client 0 of two is asked and fails, while client 1 is asked in round 1 only and delivers.
  finish(sampler, select(sampler, 1, {1}, 1), 1);
  for (unsigned round = 2; round <= 6; ++round) {
    finish(sampler, select(sampler, round, {0}, 1), round, false);
    // Client 0 never delivered: F = t + 1. After its fifth failure in round 6, F = 1.
    const double zero = round < 6 ? round + 1 + 2.0 : 2.0;
    const double one = round + 1.0;
    for (const auto& [client, choice] : stated(sampler, round + 1, {0, 1}, 1))
      CHECK(choice.inclusion == doctest::Approx((client == 0 ? zero : one) / (zero + one)));
  }
}

TEST_CASE("aw_psp: absence is no failure for the greedy selectors' probation") {
  for (const Selector selector : {Selector::kGreedy, Selector::kGreedyCoverage}) {
    AwPspSampler sampler(AwPspOptions{.selector = selector, .risk = Risk::kNone});
    finish(sampler, select(sampler, 1, everybody(3), 3), 1);
    // Client 0 is away for three rounds, in which the others deliver; then it is the least recent.
    for (unsigned round = 2; round <= 4; ++round) finish(sampler, select(sampler, round, {1, 2}, 2), round);
    const auto chosen = select(sampler, 5, everybody(3), 1);
    REQUIRE(chosen.size() == 1);
    CHECK(chosen[0].client == ClientId(0));
  }
}

TEST_CASE("aw_psp: a rare label on probation is still covered") {
  AwPspSampler sampler(
      AwPspOptions{.selector = Selector::kGreedyCoverage, .risk = Risk::kHard, .labels = Labels::kSets});
  for (unsigned i = 0; i < 4; ++i)
    sampler.describe(ClientId(i), {.labels = i == 0 ? std::vector<double>{0, 1} : std::vector<double>{1, 0}});
  finish(sampler, select(sampler, 1, everybody(4), 4), 1, false);
  finish(sampler, select(sampler, 2, {1, 2, 3}, 3), 2);
  CHECK(holds(select(sampler, 3, everybody(4), 2), 0));
}

TEST_CASE("aw_psp: the weighted selector with told labels covers them, with the stated probabilities") {
  AwPspSampler before(AwPspOptions{.labels = Labels::kSets});
  // Sixteen clients hold labels 0 and 1; two hold label 2, and two label 3.
  for (unsigned i = 0; i < 20; ++i) {
    std::vector<double> labels(4, 0.0);
    if (i < 16) labels[0] = labels[1] = 1;
    if (i >= 16) labels[i < 18 ? 2 : 3] = 1;
    before.describe(ClientId(i), {.labels = labels});
  }
  finish(before, select(before, 1, everybody(20), 20), 1);
  constexpr int kDraws = 5'000;
  std::vector<std::uint64_t> seen(20);
  std::vector<double> p(20);
  int covered = 0;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    AwPspSampler sampler = before;
    const auto chosen = select(sampler, 2, everybody(20), 4, seed);
    REQUIRE(chosen.size() == 4);
    for (const Selected& choice : chosen) {
      ++seen[choice.client.value()];
      p[choice.client.value()] = choice.inclusion;
    }
    covered += (holds(chosen, 16) || holds(chosen, 17)) && (holds(chosen, 18) || holds(chosen, 19)) ? 1 : 0;
  }
  CHECK(test::worst_chi_square(p, seen, kDraws) < test::kCriticalChiSquare);
  // Each of the labels 2 and 3 has half of the weight of a label with average holders, so one holder of each
  // is drawn in every round. Four of twenty would hold both labels in 11 % of the rounds.
  CHECK(covered == kDraws);
}

TEST_CASE("aw_psp: freshness grows by one each round without a delivery and starts again at 0") {
  CHECK(freshness(RoundNumber(7), RoundNumber()) == 8);
  CHECK(freshness(RoundNumber(7), RoundNumber(7)) == 0);
  CHECK(freshness(RoundNumber(9), RoundNumber(7)) == 2);
  AwPspOptions options = plain_psp();
  options.b = 1;
  AwPspSampler sampler(options);
  const auto chosen = select(sampler, 1, everybody(3), 1);
  finish(sampler, chosen, 1);
  const unsigned first = chosen[0].client.value();
  // The selected client has freshness F = 1, the others 3: the probabilities are 2, 4 and 4 of 10.
  for (const auto& [client, choice] : stated(sampler, 2, everybody(3), 1))
    CHECK(choice.inclusion == doctest::Approx(client == first ? 0.2 : 0.4));
}

TEST_CASE("aw_psp: a client that failed is on probation for three rounds of the greedy selector") {
  AwPspSampler sampler(AwPspOptions{.selector = Selector::kGreedy, .risk = Risk::kHard});
  finish(sampler, select(sampler, 1, everybody(3), 3), 1, false);
  for (unsigned round = 2; round <= 4; ++round) {
    const auto chosen = select(sampler, round, everybody(5), 2);
    finish(sampler, chosen, round);
    CHECK(inclusions(chosen) == std::map<unsigned, double>{{3, 1.0}, {4, 1.0}});
  }
  // If the other clients are too few, a client on probation is selected; afterwards its freshness counts.
  CHECK(select(sampler, 5, everybody(5), 5).size() == 5);
}

TEST_CASE("aw_psp: substitutes are found while others work, whether labels are told or not") {
  for (const Selector selector : {Selector::kWeighted, Selector::kGreedy, Selector::kGreedyCoverage})
    for (const Labels labels : {Labels::kNone, Labels::kSets}) {
      AwPspSampler sampler(AwPspOptions{.selector = selector, .labels = labels});
      const auto chosen = select(sampler, 1, everybody(6), 2);
      REQUIRE(chosen.size() == 2);
      finish(sampler, {chosen[0]}, 1, false);
      CHECK(select(sampler, 1, everybody(6), 1).size() == 1);
      // A record that arrives during the first round counts for the next substitute.
      sampler.describe(ClientId(4), {.labels = {1, 0}});
      CHECK(select(sampler, 1, everybody(6), 6).size() == 6);
    }
}

TEST_CASE("aw_psp: a task that nobody ended covers its labels in its own round only") {
  AwPspSampler sampler(AwPspOptions{.selector = Selector::kGreedyCoverage, .labels = Labels::kSets});
  for (unsigned i = 0; i < 4; ++i)
    sampler.describe(ClientId(i), {.labels = i < 2 ? std::vector<double>{1, 0} : std::vector<double>{0, 1}});
  REQUIRE(holds(select(sampler, 1, {0, 2}, 1), 2));  // it never answers, and is absent
  finish(sampler, select(sampler, 1, {0}, 1), 1);
  // Clients 1 and 3 are equally fresh, and the higher number decides, unless the label of client 3 is
  // covered.
  CHECK(holds(select(sampler, 2, {0, 1, 3}, 1), 3));
}

TEST_CASE("aw_psp: after five failures in a row, a rare label gives its holder no place in every round") {
  AwPspSampler sampler(
      AwPspOptions{.selector = Selector::kGreedyCoverage, .risk = Risk::kNone, .labels = Labels::kSets});
  for (unsigned i = 0; i < 5; ++i)
    sampler.describe(ClientId(i), {.labels = i == 0 ? std::vector<double>{0, 1} : std::vector<double>{1, 0}});
  int asked = 0;
  for (unsigned round = 1; round <= 25; ++round)
    for (const Selected& choice : select(sampler, round, everybody(5), 2)) {
      if (choice.client == ClientId(0)) ++asked;
      finish(sampler, {choice}, round, choice.client != ClientId(0));
    }
  // Five times for its label, and then once in about three rounds, as the others.
  CHECK(asked >= 5);
  CHECK(asked <= 14);
}

TEST_CASE("aw_psp: two clients that claim a rare label and never deliver get little of the round") {
  AwPspSampler sampler(AwPspOptions{.labels = Labels::kSets});
  for (unsigned i = 0; i < 40; ++i) {
    std::vector<double> labels(10, 0.0);
    labels[i < 2 ? 9 : i % 9] = 1;
    sampler.describe(ClientId(i), {.labels = labels});
  }
  int asked = 0;
  for (unsigned round = 1; round <= 200; ++round)
    for (const Selected& choice : select(sampler, round, everybody(40), 5)) {
      const bool liar = choice.client.value() < 2;
      if (liar && round > 100) ++asked;
      finish(sampler, {choice}, round, !liar);
    }
  CHECK(asked <= 25);  // of 500 selections; with honest deliveries, their label's share would be about 50
}

TEST_CASE("aw_psp: the largest exponents and the rarest labels leave all probabilities finite") {
  AwPspOptions options{.a = 10, .b = 10, .c = 10, .d = 10, .labels = Labels::kSets};
  AwPspSampler sampler(options);
  for (unsigned i = 0; i < 300; ++i) {
    std::vector<double> labels(128, 0.0);
    labels[i == 0 || i == 2 ? 127 : i % 3] = 1;
    sampler.describe(ClientId(i), {.labels = labels});
  }
  for (const unsigned round : {1U, 2U, 1000U, 999'998U, 999'999U}) {
    const auto chosen = select(sampler, round, everybody(300), 7);
    REQUIRE(chosen.size() == 7);
    for (const Selected& choice : chosen) {
      CHECK((choice.inclusion > 0 && choice.inclusion <= 1));
      sampler.remember({.client = choice.client,
                        .round = RoundNumber(round),
                        .delivered = choice.client.value() % 2 == 0,
                        .samples = SampleCount(1),
                        .loss_rms = choice.client.value() == 4 ? 1e30 : 1e-30});
    }
  }
}

TEST_CASE("aw_psp: who takes a failed client's place brings the labels that the others lack") {
  AwPspSampler sampler(AwPspOptions{.selector = Selector::kGreedyCoverage, .labels = Labels::kSets});
  for (const unsigned client : {0U, 3U, 5U}) sampler.describe(ClientId(client), {.labels = {1, 1, 0, 0}});
  for (const unsigned client : {1U, 2U, 4U}) sampler.describe(ClientId(client), {.labels = {0, 0, 1, 1}});
  const auto chosen = select(sampler, 1, everybody(6), 2);
  REQUIRE(holds(chosen, 5));
  REQUIRE(holds(chosen, 4));
  const auto tell = [](AwPspSampler& one, unsigned client, bool delivered) {
    one.remember({.client = ClientId(client), .round = RoundNumber(1), .delivered = delivered});
  };
  // Client 3 has the highest remaining number and labels 0 and 1. While client 5 works, or after it has
  // delivered, a client with labels 2 and 3 must replace client 4.
  AwPspSampler delivered = sampler;
  tell(delivered, 5, true);
  for (AwPspSampler* one : {&sampler, &delivered}) {
    tell(*one, 4, false);
    AwPspSampler copy = *one;
    CHECK(holds(select(copy, 1, {0, 1, 2, 3}, 1), 2));
  }
  // Client 5 fails as well: labels 0 and 1 are as rare as the others, and the highest number decides.
  tell(sampler, 5, false);
  CHECK(holds(select(sampler, 1, {0, 1, 2, 3}, 1), 3));
}

TEST_CASE("aw_psp: the greedy selector takes everybody alike within N / m rounds, rounded up") {
  for (const Selector selector : {Selector::kGreedy, Selector::kGreedyCoverage}) {
    AwPspSampler sampler(AwPspOptions{.selector = selector, .risk = Risk::kHard});
    std::vector<std::set<unsigned>> rounds;
    for (unsigned round = 1; round <= 30; ++round) {
      const auto chosen = select(sampler, round, everybody(23), 5);
      REQUIRE(chosen.size() == 5);
      for (const Selected& choice : chosen) CHECK(choice.inclusion == 1);
      finish(sampler, chosen, round);
      std::set<unsigned> clients;
      for (const Selected& choice : chosen) clients.insert(choice.client.value());
      rounds.push_back(clients);
      if (round < 5) continue;
      std::set<unsigned> seen;
      for (std::size_t k = rounds.size() - 5; k < rounds.size(); ++k)
        seen.insert(rounds[k].begin(), rounds[k].end());
      CHECK(seen.size() == 23);
    }
  }
}

TEST_CASE("aw_psp: the greedy selector takes the largest products of availability and freshness") {
  AwPspSampler sampler(AwPspOptions{.selector = Selector::kGreedy, .risk = Risk::kHard, .probation = 0});
  // Clients 0 and 1 come and go, the others stay. At equal freshness steady clients come first, by number.
  select(sampler, 1, everybody(6), 0);
  select(sampler, 2, {2, 3, 4, 5}, 0);
  select(sampler, 3, everybody(6), 0);
  CHECK(test::clients_of(select(sampler, 4, everybody(6), 4)) ==
        std::vector<ClientId>{ClientId(2), ClientId(3), ClientId(4), ClientId(5)});
}

}  // namespace fedge::aggregation
