#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "aggregation/samplers/awpsp/aw_psp.h"
#include "tests/unit/aggregation/samplers/awpsp_reference.h"
#include "tests/unit/aggregation/samplers/awpsp_rounds.h"
#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
using namespace test;

TEST_CASE("aw_psp: without exponents and risk it is PSP, every set of clients equally likely") {
  // Ten equally likely pairs of five clients; chi-square with 9 degrees of freedom: 27.9 at p = 0.001.
  AwPspSampler before(plain_psp());
  before.describe(ClientId(1), {.latency_ms = 3});
  finish(before, select(before, 1, {0, 1, 2}, 2), 1, false);
  finish(before, select(before, 2, {0, 2, 3, 4}, 3), 2);
  std::map<std::vector<ClientId>, int> seen;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    AwPspSampler sampler = before;
    const auto chosen = select(sampler, 3, everybody(5), 2, seed);
    for (const Selected& choice : chosen) REQUIRE(choice.inclusion == doctest::Approx(0.4).epsilon(1e-12));
    ++seen[test::clients_of(chosen)];
  }
  REQUIRE(seen.size() == 10);
  double chi_square = 0;
  for (const auto& [pair, count] : seen) chi_square += (count - 2000.0) * (count - 2000.0) / 2000.0;
  CHECK(chi_square < 27.9);
}

TEST_CASE("aw_psp: what it states and draws is the slow reference's, whatever risk, utility and weights") {
  for (const Risk risk : {Risk::kSoft, Risk::kHard, Risk::kNone})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      AwPspOptions options{.a = 1.5, .b = 0.5, .d = 0.7, .chronic = false, .risk = risk, .diversity = false};
      options.inverse_probability = true;
      constexpr unsigned kClients = 14;
      Rng rng = Rng(seed).fork("federation");
      AwPspSampler sampler(options);
      test::SlowAwPsp slow(options, kClients);
      for (unsigned i = 0; i < kClients; ++i) {
        slow.clients()[i].latency = i == 3 ? -1 : rng.uniform() * 100;
        sampler.describe(ClientId(i), {.latency_ms = i == 3 ? kNever : slow.clients()[i].latency});
      }
      for (unsigned round = 1; round <= 80; ++round) {
        const bool shock = rng.below(3) == 0;
        std::vector<unsigned> up;
        for (unsigned i = 0; i < kClients; ++i)
          if (rng.below(4) > 0 && !(shock && i % 2 == 0)) up.push_back(i);
        const std::size_t m = rng.below(6);
        const auto expected = slow.begin_round(round, there(up), m);
        const auto chosen = select(sampler, round, up, m, seed);
        REQUIRE(chosen.size() == std::min(m, up.size()));
        for (const Selected& choice : chosen) {
          const unsigned i = choice.client.value();
          CHECK(choice.inclusion == doctest::Approx(expected.inclusion.at(i)).epsilon(1e-4));
          CHECK(choice.coefficient == doctest::Approx(expected.coefficient.at(i)).epsilon(1e-4));
          test::RememberedClient& client = slow.clients()[i];
          const bool delivered = rng.below(i == 5 ? 8 : 5) > (i == 5 ? 6 : 0);
          client.tasks.push_back(delivered);
          const std::size_t tasks = client.tasks.size();
          const auto last = client.tasks.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(5, tasks));
          const bool often = tasks >= 5 && std::find(last, client.tasks.end(), true) == client.tasks.end();
          if (delivered || often) client.fresh_since = round;
          if (!delivered) client.failed.back() = true;
          const double loss = 0.1 + rng.uniform();
          if (delivered) client.utility = client.samples * loss;
          sampler.remember({.client = choice.client,
                            .round = RoundNumber(round),
                            .delivered = delivered,
                            .samples = SampleCount(static_cast<std::uint64_t>(client.samples)),
                            .loss_rms = loss});
        }
      }
    }
}

TEST_CASE("aw_psp: clients are selected as often as stated, with clusters, risk and the guard") {
  AwPspSampler before{AwPspOptions{}};
  for (unsigned i = 0; i < 12; ++i)
    before.describe(ClientId(i), {.latency_ms = i < 6 ? 10.0 + i : 90.0 + 5 * i});
  Rng rng(5);
  for (unsigned round = 1; round <= 30; ++round) {
    std::vector<unsigned> up;
    const bool shock = rng.below(2) == 0;
    for (unsigned i = 0; i < 12; ++i)
      if (i < 6 ? !shock : rng.below(5) > 0) up.push_back(i);
    for (const Selected& choice : select(before, round, up, 4, 2))
      finish(before, {choice}, round, choice.client.value() < 6 || rng.below(3) > 0);
  }
  constexpr int kDraws = 20'000;
  const auto p = stated(before, 31, everybody(12), 4);
  REQUIRE(p.size() == 12);
  std::vector<double> probabilities;
  for (const auto& [client, choice] : p) probabilities.push_back(choice.inclusion);
  std::vector<std::uint64_t> seen(12);
  int shared = 0;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    AwPspSampler sampler = before;
    const auto chosen = select(sampler, 31, everybody(12), 4, seed);
    REQUIRE(chosen.size() == 4);
    int of_cluster = 0;
    for (const Selected& choice : chosen) {
      ++seen[choice.client.value()];
      of_cluster += choice.client.value() < 6 ? 1 : 0;
    }
    shared = std::max(shared, of_cluster);
  }
  CHECK(test::worst_chi_square(probabilities, seen, kDraws) < test::kCriticalChiSquare);
  CHECK(shared == 2);  // of the six clients that go down together, at most half of four are selected
}

TEST_CASE("aw_psp: weighed by inverse probability, the expected sum is the mean over all known clients") {
  AwPspOptions options;
  options.inverse_probability = true;
  options.max_coefficient = std::numeric_limits<double>::infinity();
  options.predictor.forgetting = 1.0;
  AwPspSampler sampler(options);
  CHECK(sampler.traits().weighs);
  CHECK_FALSE(sampler.traits().substitutes);
  const std::vector<std::vector<unsigned>> history = {{0, 1, 2, 3}, {0, 1, 3}, {0, 2},
                                                      {0, 1, 3},    {0, 1},    {0, 3}};
  test::SlowAwPsp slow(options, 4);
  for (unsigned round = 1; round <= history.size(); ++round) {
    const auto chosen = select(sampler, round, history[round - 1], 4);
    for (unsigned i = 0; i < 4; ++i) {
      slow.clients()[i].there.push_back(holds(chosen, i));
      if (!holds(chosen, i)) continue;
      slow.clients()[i].tasks.push_back((round + i) % 3 != 0);
      sampler.remember(
          {.client = ClientId(i), .round = RoundNumber(round), .delivered = (round + i) % 3 != 0});
    }
  }
  // Assumes that the predictions are true and that clients come, go and fail independently.
  std::vector<double> live, delivers;
  for (const auto& client : slow.clients()) {
    live.push_back(slow.live_chance(client));
    delivers.push_back(slow.arrival(client));
  }
  const std::vector<double> update = {3, -1, 10, 0.5};
  double mean = 0;
  for (unsigned i = 0; i < 4; ++i) mean += (10.0 + i) / 46 * update[i];
  double expectation = 0;
  for (unsigned subset = 0; subset < 16; ++subset) {
    double probability = 1;
    std::vector<unsigned> up;
    for (unsigned i = 0; i < 4; ++i) {
      probability *= (subset >> i & 1) ? live[i] : 1 - live[i];
      if (subset >> i & 1) up.push_back(i);
    }
    const auto choices = stated(sampler, 7, up, 2);
    REQUIRE(choices.size() == up.size());
    for (const auto& [i, choice] : choices)
      expectation += probability * choice.inclusion * delivers[i] * choice.coefficient * update[i];
  }
  CHECK(expectation == doctest::Approx(mean).epsilon(1e-5));
}

TEST_CASE("aw_psp: an inverse probability counts at most as the largest coefficient") {
  AwPspOptions options;
  options.inverse_probability = true;
  options.max_coefficient = 3;
  AwPspSampler sampler(options);
  // One of 12 with A = 1/2 would get a coefficient of 24 without the limit.
  const auto chosen = select(sampler, 1, everybody(12), 1);
  REQUIRE(chosen.size() == 1);
  const double samples = 10 + chosen[0].client.value();
  CHECK(chosen[0].coefficient == doctest::Approx(3 * samples / 186));
}

TEST_CASE("aw_psp: who is away counts in the mean over all, who has left does not until it is back") {
  AwPspOptions options = plain_psp();
  options.inverse_probability = true;
  options.max_coefficient = 1;  // the coefficient is then n_i / n; client i has 10 + i samples
  AwPspSampler sampler(options);
  const auto coefficients = [&](unsigned round, const std::vector<unsigned>& up,
                                const std::vector<ClientId>& left) {
    const auto pool = there(up);
    std::vector<double> n;
    for (const Selected& choice : sampler.select({RoundNumber(round), pool, pool.size(), Rng(1), left}))
      n.push_back(choice.coefficient);
    return n;
  };
  const double all = 10 + 11 + 12 + 13;
  const double rest = 10 + 11 + 12;
  CHECK(coefficients(1, {0, 1, 2, 3}, {}) == std::vector{10 / all, 11 / all, 12 / all, 13 / all});
  CHECK(coefficients(2, {0, 1, 2}, {}) == std::vector{10 / all, 11 / all, 12 / all});
  CHECK(coefficients(3, {0, 1, 2}, {ClientId(3)}) == std::vector{10 / rest, 11 / rest, 12 / rest});
  CHECK(coefficients(4, {0, 1, 2, 3}, {}) == std::vector{10 / all, 11 / all, 12 / all, 13 / all});
}

TEST_CASE(
    "aw_psp: who is presumed gone is not selected until a probe has found it, which one in 22 rounds does") {
  AwPspOptions options = plain_psp();
  options.predictor.forgetting = 1.0;
  int at_once = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    AwPspSampler sampler(options);
    finish(sampler, select(sampler, 1, {0, 1, 2}, 3, seed), 1);
    // Client 0 is up in round 1 only: down 22 times, with a chance of 1 / 23 to return.
    unsigned round = 2;
    for (; round <= 23; ++round) finish(sampler, select(sampler, round, {1, 2}, 2, seed), round);
    bool found = false;
    for (unsigned waited = 0; waited < 400 && !found; ++waited, ++round) {
      const auto chosen = select(sampler, round, {0, 1, 2}, 3, seed);
      finish(sampler, chosen, round);
      found = holds(chosen, 0);
      CHECK(chosen.size() == (found ? 3 : 2));
      at_once += waited == 0 && found ? 1 : 0;
    }
    CHECK(found);
    CHECK(holds(select(sampler, round, {0, 1, 2}, 3, seed), 0));
  }
  // 600 / 22 = 27.3 is expected, with a deviation of 5.1 (five allowed). 400 rounds miss with probability
  // 1e-8.
  CHECK(std::abs(at_once - 27.3) < 25.5);
}

TEST_CASE("aw_psp: where all who are there were presumed gone they are probed at once") {
  AwPspOptions options = plain_psp();
  options.predictor.forgetting = 1.0;
  AwPspSampler sampler(options);
  select(sampler, 1, {0, 1}, 0);
  for (unsigned round = 2; round <= 40; ++round) select(sampler, round, {2}, 0);
  CHECK(select(sampler, 41, {0, 1}, 1).size() == 1);
}

TEST_CASE("aw_psp: a client is not judged by its absence while it works") {
  AwPspOptions options = plain_psp();
  options.a = 1;
  AwPspSampler sampler(options);
  select(sampler, 1, {0, 1}, 2);
  sampler.remember({.client = ClientId(1), .round = RoundNumber(1), .delivered = true});
  select(sampler, 2, {1}, 0);
  select(sampler, 3, {1}, 0);
  sampler.remember({.client = ClientId(0), .round = RoundNumber(1), .delivered = true});
  // Client 0 was seen once: 1/2. Client 1 stayed twice: (0.95 + 1 + 1) / (0.95 + 1 + 2).
  const double steady = 2.95 / 3.95;
  for (const auto& [client, choice] : stated(sampler, 4, {0, 1}, 1))
    CHECK(choice.inclusion == doctest::Approx((client == 0 ? 0.5 : steady) / (0.5 + steady)).epsilon(1e-5));
}

TEST_CASE("aw_psp: a substitute's selection says nothing about who is there") {
  AwPspSampler with{AwPspOptions{}};
  AwPspSampler without{AwPspOptions{}};
  for (unsigned round = 1; round <= 12; ++round) {
    const std::vector<unsigned> up = round % 3 == 0 ? everybody(8) : std::vector<unsigned>{0, 2, 3, 5, 7};
    CHECK(select(with, round, up, 3) == select(without, round, up, 3));
    CHECK(select(with, round, {4}, 0).empty());
    CHECK(select(with, round, {}, 1).empty());
  }
  // An unknown client that connected after the start of the round can be a substitute.
  CHECK(holds(select(with, 12, {40}, 1), 40));
}

TEST_CASE("aw_psp: the order in which clients become known never shows") {
  std::vector<unsigned> order = everybody(30);
  Rng rng(8);
  std::vector<std::vector<Selected>> reference;
  for (int trial = 0; trial < 5; ++trial) {
    AwPspSampler sampler(AwPspOptions{.labels = Labels::kSets});
    for (const unsigned i : order)
      sampler.describe(ClientId(i), {.latency_ms = static_cast<double>(i % 7), .labels = {1.0 * (i % 2), 1}});
    std::vector<std::vector<Selected>> chosen;
    for (unsigned round = 1; round <= 20; ++round) {
      std::vector<unsigned> up;
      for (unsigned i = 0; i < 30; ++i)
        if ((i * round) % 4 != 1) up.push_back(i);
      chosen.push_back(select(sampler, round, up, 6));
      finish(sampler, chosen.back(), round, round % 2 == 0);
    }
    if (trial == 0) reference = chosen;
    CHECK(chosen == reference);
    rng.shuffle(std::span(order));
  }
}

TEST_CASE("aw_psp: nothing that a hostile client says spoils a selection or takes memory") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  AwPspOptions options{.d = 2, .labels = Labels::kDpHistogram};
  options.inverse_probability = true;
  AwPspSampler sampler(options);
  const std::vector<double> many(1'000'000, kInfinity);
  sampler.describe(ClientId(0), {.latency_ms = kNever, .packet_loss = -3, .labels = {kNever, -1, kInfinity}});
  sampler.describe(ClientId(1), {.latency_ms = -5, .packet_loss = kNever, .labels = many});
  sampler.describe(ClientId(2), {.latency_ms = kInfinity, .labels = {1e308, 1e308, 1e308}});
  sampler.describe(ClientId(3), {.latency_ms = -0.0});
  sampler.describe(ClientId(4), {.latency_ms = 1e-300});
  sampler.describe(ClientId(0xffffffff), {.latency_ms = 1});
  for (const std::uint32_t client : {0U, 0xffffffffU})
    sampler.remember({.client = ClientId(client), .delivered = true, .loss_rms = 1});
  for (unsigned round = 1; round <= 20; ++round) {
    const std::vector<Candidate> pool = {{ClientId(0), SampleCount(~std::uint64_t{0})},
                                         {ClientId(1), SampleCount(0)},
                                         {ClientId(2), SampleCount(1)},
                                         {ClientId(3 + round % 2), SampleCount(7)},
                                         {ClientId(0xffffffff), SampleCount(7)}};
    const auto chosen = sampler.select({RoundNumber(round), pool, 3, Rng(3).fork("sample", round)});
    CHECK(chosen.size() == 3);
    for (const Selected& choice : chosen) {
      CHECK(choice.client.value() < 5);
      CHECK((choice.inclusion > 0 && choice.inclusion <= 1));
      CHECK((choice.coefficient >= 0 && choice.coefficient <= 10));
      const double loss = round % 3 == 0 ? kNever : round % 3 == 1 ? kInfinity : -1;
      sampler.remember({.client = choice.client,
                        .round = RoundNumber(round),
                        .delivered = true,
                        .samples = SampleCount(~std::uint64_t{0}),
                        .norm = kInfinity,
                        .loss = kNever,
                        .loss_rms = loss});
    }
  }
  CHECK(sampler.state_bytes() <= 5 * (64 + 12 + 16));
}

TEST_CASE("aw_psp: a record without a valid latency leaves the one before") {
  AwPspSampler clean{AwPspOptions{}};
  AwPspSampler hostile{AwPspOptions{}};
  for (unsigned round = 1; round <= 30; ++round) {
    for (unsigned i = 0; i < 8; ++i) {
      clean.describe(ClientId(i), {.latency_ms = 5.0 * i});
      hostile.describe(ClientId(i), {.latency_ms = 5.0 * i});
      hostile.describe(ClientId(i), {.latency_ms = i % 2 == 0 ? kNever : -1.0});
    }
    const std::vector<unsigned> up = round % 3 == 0 ? std::vector<unsigned>{0, 1, 6, 7} : everybody(8);
    CHECK(select(clean, round, up, 3) == select(hostile, round, up, 3));
  }
}

TEST_CASE("aw_psp: clients with rare labels weigh more, and noisy counts below half a share are none") {
  struct Case {
    Labels labels;
    double first;  // label factors of the clients 1 and 2, worked out by hand
    double second;
  };
  // A client has typically two labels. Labels 0 and 1 are contested; nobody else claims 2 and 3, so each of
  // these counts 1. As a set, label 0 has two holders and label 1 has one, on average 1.5: client 1 has the
  // factor 0.75 + 1.5, and client 2 two thirds of 0.75 + 1 + 1. In a histogram, client 2's count of 2 is
  // noise, and all labels count 1.
  for (const Case& one : {Case{Labels::kNone, 1, 1}, Case{Labels::kSets, 2.25, 2.75 * 2 / 3},
                          Case{Labels::kDpHistogram, 2, 2}}) {
    AwPspOptions options = plain_psp();
    options.c = 1;
    options.labels = one.labels;
    AwPspSampler sampler(options);
    sampler.describe(ClientId(0), {.labels = {50, 50, 0, 0}});
    sampler.describe(ClientId(1), {.labels = {50, 50, 0, 0}});
    sampler.describe(ClientId(2), {.labels = {2, -3, 40, 60}});
    for (const auto& [client, choice] : stated(sampler, 1, {1, 2}, 1))
      CHECK(choice.inclusion ==
            doctest::Approx((client == 2 ? one.second : one.first) / (one.first + one.second)));
  }
}

TEST_CASE("aw_psp: with risk hard, who shares the failures of a failed neighbour waits") {
  AwPspSampler sampler(AwPspOptions{.risk = Risk::kHard, .diversity = false});
  for (unsigned i = 0; i < 8; ++i) sampler.describe(ClientId(i), {.latency_ms = i < 2 ? 1.0 + i : 100.0 * i});
  for (unsigned round = 1; round <= 20; ++round)
    select(sampler, round, round % 2 == 0 ? std::vector<unsigned>{2, 3, 4, 5, 6, 7} : everybody(8), 0);
  // Client 0 is down. Client 1 was always down at the same time and is back alone.
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    AwPspSampler copy = sampler;
    CHECK_FALSE(holds(select(copy, 21, {1, 2, 3, 4, 5, 6, 7}, 6, seed), 1));
    AwPspSampler again = sampler;
    CHECK(holds(select(again, 21, {1, 2, 3, 4, 5, 6, 7}, 7, seed), 1));
  }
}

TEST_CASE("aw_psp: what a client that has left had to do with others is over") {
  // As above, client 0 is down and its neighbour 1 waits. When client 0 has left, client 1 need not wait.
  AwPspSampler sampler(AwPspOptions{.risk = Risk::kHard, .diversity = false});
  for (unsigned i = 0; i < 8; ++i) sampler.describe(ClientId(i), {.latency_ms = i < 2 ? 1.0 + i : 100.0 * i});
  for (unsigned round = 1; round <= 20; ++round)
    select(sampler, round, round % 2 == 0 ? std::vector<unsigned>{2, 3, 4, 5, 6, 7} : everybody(8), 0);
  const auto pool = there({1, 2, 3, 4, 5, 6, 7});
  const std::vector<ClientId> left = {ClientId(0), ClientId(4000)};
  std::size_t held = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    AwPspSampler copy = sampler;
    if (holds(copy.select({RoundNumber(21), pool, 6, Rng(seed), left}), 1)) ++held;
    CHECK(copy.state_bytes() ==
          sampler.state_bytes() - 5);  // its entry in the order of latencies, and its window
  }
  CHECK(held > 0);
}

TEST_CASE("aw_psp: who has left and is back has not said which labels it holds") {
  AwPspOptions options = plain_psp();
  options.c = 1;
  options.labels = Labels::kSets;
  AwPspSampler sampler(options);
  sampler.describe(ClientId(2), {.labels = {50, 50, 0, 0}});
  for (const auto& [client, choice] : stated(sampler, 1, {1, 2}, 1)) CHECK(choice.inclusion == 0.5);
  const std::vector<ClientId> left = {ClientId(2)};
  sampler.select({.round = RoundNumber(1), .candidates = {}, .count = 1, .rng = Rng(1), .left = left});
  for (const auto& [client, choice] : stated(sampler, 2, {1, 2}, 1)) CHECK(choice.inclusion == 0.5);
}

TEST_CASE("aw_psp: a run file's options make the samplers of the table, and contradictions are refused") {
  const auto read = [](const char* name, config::Table table) -> Result<SamplerFactory> {
    for (const SamplerKind& kind : sampler_kinds())
      if (std::string(kind.name) == name) {
        config::Reader section(table, "sampling", "run.toml");
        const SamplerFactory make = kind.read(section);
        FEDGE_TRY_VOID(section.finish());
        return make;
      }
    return invalid("no such sampler");
  };
  const auto text = [](const char* value) { return config::Value{std::string(value), "run.toml:1"}; };
  CHECK(read("aw_psp", {}));
  const auto weighing = read("aw_psp", {{"weights", text("ipw")}});
  REQUIRE(weighing);
  CHECK((*weighing)()->traits().weighs);
  const auto greedy = read("aw_psp", {{"weights", text("ipw")}, {"selector", text("greedy")}});
  REQUIRE_FALSE(greedy);
  CHECK(greedy.error().message.find("requires selector = \"weighted\"") != std::string::npos);
  const auto far =
      read("availability", {{"weights", text("ipw")}, {"horizon", {std::int64_t{3}, "run.toml:2"}}});
  REQUIRE_FALSE(far);
  CHECK(far.error().message.find("requires horizon = 1") != std::string::npos);
  CHECK_FALSE(read("availability", {{"neighbours", {std::int64_t{3}, "run.toml:2"}}}));

  // Only availability counts: 1/2 for an unknown client, 1.95 / 2.95 for one that was up in both rounds.
  const auto make = read("availability", {});
  REQUIRE(make);
  double steady = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto sampler = (*make)();
    for (unsigned round = 1; round <= 2; ++round) {
      const auto pool = there({0});
      sampler->select({RoundNumber(round), pool, 1, Rng(seed)});
    }
    const auto pool = there({0, 1});
    const auto chosen = sampler->select({RoundNumber(3), pool, 1, Rng(seed)});
    if (chosen[0].client == ClientId(0)) steady = chosen[0].inclusion;
  }
  const double expected = 2.0 / 3;
  CHECK(steady == doctest::Approx(expected / (expected + 0.5)).epsilon(1e-5));
}

}  // namespace fedge::aggregation
