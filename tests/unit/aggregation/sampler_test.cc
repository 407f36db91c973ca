#include "aggregation/samplers/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "aggregation/samplers/optimal.h"
#include "aggregation/samplers/uniform.h"
#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
namespace {

std::vector<Candidate> candidates(std::uint32_t count) {
  std::vector<Candidate> result;
  for (std::uint32_t i = 0; i < count; ++i) result.push_back({ClientId(3 * i), SampleCount(60)});
  return result;
}

std::vector<ClientId> uniform(const std::vector<Candidate>& pool, std::size_t count, std::uint64_t seed) {
  std::vector<ClientId> clients;
  for (const Selected& chosen :
       UniformSampler().select({RoundNumber(1), pool, count, Rng(seed).fork("sample", 1)}))
    clients.push_back(chosen.client);
  return clients;
}

}  // namespace

TEST_CASE("uniform: picks the wanted number of distinct candidates, sorted") {
  const auto pool = candidates(100);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto chosen = uniform(pool, 10, seed);
    REQUIRE(chosen.size() == 10);
    CHECK(std::is_sorted(chosen.begin(), chosen.end()));
    CHECK(std::set<ClientId>(chosen.begin(), chosen.end()).size() == 10);
    for (const ClientId client : chosen) CHECK((client.value() % 3 == 0 && client.value() < 300));
  }
}

TEST_CASE("uniform: takes everybody when there are no more than wanted") {
  const std::vector<ClientId> everybody = {ClientId(0), ClientId(3), ClientId(6)};
  CHECK(uniform(candidates(3), 3, 1) == everybody);
  CHECK(uniform(candidates(3), 10, 1) == everybody);
  CHECK(uniform(candidates(0), 10, 1).empty());
  CHECK(uniform(candidates(3), 0, 1).empty());
}

TEST_CASE("uniform: the same stream and candidates give the same choice, another stream another") {
  const auto pool = candidates(1000);
  CHECK(uniform(pool, 20, 7) == uniform(pool, 20, 7));
  CHECK(uniform(pool, 20, 7) != uniform(pool, 20, 8));
}

TEST_CASE("uniform: a sampler has no memory of earlier choices") {
  const auto pool = candidates(50);
  const auto used = std::make_unique<UniformSampler>();
  (void)used->select({RoundNumber(1), pool, 5, Rng(3)});
  CHECK(used->select({RoundNumber(2), pool, 5, Rng(4)}) ==
        std::make_unique<UniformSampler>()->select({RoundNumber(2), pool, 5, Rng(4)}));
}

TEST_CASE("uniform: all pairs of five are equally likely") {
  // 10 pairs, 20,000 draws: 2,000 for each pair; chi-square with 9 degrees of freedom: 27.9 at p = 0.001.
  const auto pool = candidates(5);
  std::map<std::vector<ClientId>, int> seen;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) ++seen[uniform(pool, 2, seed)];
  REQUIRE(seen.size() == 10);
  double chi_square = 0;
  for (const auto& [pair, count] : seen) chi_square += (count - 2000.0) * (count - 2000.0) / 2000.0;
  CHECK(chi_square < 27.9);
}

TEST_CASE("uniform: clients are drawn as often as it states") {
  // 20,000 draws; tests the worst of 10 clients against chi-square with one degree of freedom, p = 1e-5.
  const auto pool = candidates(10);
  UniformSampler sampler;
  const auto seen = test::draw_often(sampler, {RoundNumber(1), pool, 3, Rng(5)}, 20'000);
  CHECK(seen.steady);
  CHECK(seen.stated == std::vector<double>(10, 0.3));
  CHECK(test::worst_chi_square(seen, 20'000) < test::kCriticalChiSquare);
}

TEST_CASE("samplers: each draws distinct candidates in order, with probabilities, and the same again") {
  const auto pool = candidates(60);
  for (const SamplerKind& kind : sampler_kinds()) {
    CAPTURE(kind.name);
    const config::Table empty;
    config::Reader section(empty, "", "");
    const SamplerFactory make = kind.read(section);
    const auto sampler = make();
    const auto again = make();
    for (std::uint32_t round = 1; round <= 20; ++round) {
      const SelectionRequest request{RoundNumber(round), pool, 12, Rng(9).fork("sample", round)};
      const std::vector<Selected> chosen = sampler->select(request);
      CHECK(chosen == again->select(request));
      std::set<ClientId> distinct;
      for (const Selected& choice : chosen) {
        CHECK((choice.client.value() % 3 == 0 && choice.client.value() < 180));
        CHECK((choice.inclusion > 0 && choice.inclusion <= 1));
        CHECK((choice.coefficient > 0) == sampler->traits().weighs);
        distinct.insert(choice.client);
        for (Sampler* one : {sampler.get(), again.get()})
          one->remember({.client = choice.client,
                         .round = RoundNumber(round),
                         .delivered = choice.client.value() % 4 > 0,
                         .samples = SampleCount(60),
                         .norm = 1,
                         .loss = 0.1 * choice.client.value(),
                         .loss_rms = 0.2 * choice.client.value(),
                         .time = seconds(choice.client.value())});
      }
      CHECK(distinct.size() == chosen.size());
      CHECK(std::is_sorted(chosen.begin(), chosen.end(),
                           [](const Selected& a, const Selected& b) { return a.client < b.client; }));
      if (sampler->traits().substitutes) CHECK(chosen.size() == 12);
    }
    CHECK(sampler->select({RoundNumber(21), {}, 12, Rng(1)}).empty());
    CHECK(sampler->select({RoundNumber(21), pool, 0, Rng(1)}).empty());
  }
}

TEST_CASE("psp: draws the very clients that uniform draws") {
  const auto pool = candidates(40);
  const config::Table empty;
  config::Reader section(empty, "", "");
  for (const SamplerKind& kind : sampler_kinds())
    if (std::string(kind.name) == "psp")
      for (std::uint64_t seed = 0; seed < 20; ++seed)
        CHECK(test::clients_of(kind.read(section)()->select(
                  {RoundNumber(1), pool, 8, Rng(seed).fork("sample", 1)})) == uniform(pool, 8, seed));
}

TEST_CASE(
    "optimal: remembered norms are averages of the accepted ones, and a stranger is an average client") {
  OptimalSampler sampler({.budget = 1, .remembered = true});
  CHECK(sampler.traits().draw == Draw::kBeforeTraining);
  const std::vector<Participant> three = {
      {ClientId(0), SampleCount(10)}, {ClientId(1), SampleCount(10)}, {ClientId(2), SampleCount(20)}};
  // No norm is known yet: only the samples count.
  CHECK(sampler.probabilities(three) == std::vector<double>{0.25, 0.25, 0.5});
  sampler.remember({.client = ClientId(0), .delivered = true, .norm = 4});
  sampler.remember({.client = ClientId(0), .delivered = true, .norm = 2});  // mean norm 3
  sampler.remember({.client = ClientId(1), .delivered = true, .norm = 1});
  // Client 2 is unknown and gets the mean norm 2: 30, 10 and 40 of 80.
  const std::vector<double> p = sampler.probabilities(three);
  CHECK(p[0] == doctest::Approx(0.375));
  CHECK(p[1] == doctest::Approx(0.125));
  CHECK(p[2] == doctest::Approx(0.5));
}

TEST_CASE("optimal: reported norms are taken as they are, and earlier ones do not matter") {
  OptimalSampler sampler({.budget = 1});
  CHECK(sampler.traits().draw == Draw::kBeforeUpload);
  sampler.remember({.client = ClientId(0), .delivered = true, .norm = 100});
  const std::vector<Participant> two = {{ClientId(0), SampleCount(10), 1}, {ClientId(1), SampleCount(10), 3}};
  CHECK(sampler.probabilities(two) == std::vector<double>{0.25, 0.75});
}

}  // namespace fedge::aggregation
