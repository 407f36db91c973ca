// Measures what a client gains by claiming labels that it does not hold.
#include <doctest/doctest.h>

#include <vector>

#include "aggregation/samplers/awpsp/aw_psp.h"

namespace fedge::aggregation {
namespace {

// Returns how often client 0, which claims this many labels, is selected in a round of 4 of 20 clients. Every
// other client holds 2 of 10 labels, and all deliver.
double share_of_liar(AwPspOptions::Selector selector, std::size_t claimed) {
  constexpr std::uint32_t kCount = 20;
  constexpr std::uint32_t kRounds = 600;
  AwPspSampler sampler(AwPspOptions{.selector = selector, .labels = protocol::LabelReport::kSets});
  std::vector<Candidate> pool;
  for (std::uint32_t client = 0; client < kCount; ++client) {
    std::vector<double> labels(128, 0.0);
    for (std::size_t l = 0; l < (client == 0 ? claimed : 2); ++l)
      labels[client == 0 ? l : (client * 3 + l) % 10] = 1;
    sampler.describe(ClientId(client), {.labels = labels});
    pool.push_back({ClientId(client), SampleCount(50)});
  }
  std::size_t times = 0;
  for (std::uint32_t round = 1; round <= kRounds; ++round)
    for (const Selected& choice :
         sampler.select({RoundNumber(round), pool, 4, Rng(1).fork("sample", round)})) {
      times += choice.client == ClientId(0);
      sampler.remember({.client = choice.client, .round = RoundNumber(round), .delivered = true});
    }
  return static_cast<double>(times) / kRounds;
}

}  // namespace

TEST_CASE("aw_psp: who claims every label is asked about as often as everybody else") {
  // Its fair share is 4 of 20. Without the bound by the typical number of labels, it would be asked in almost
  // every round, and so it would with 128 labels that nobody else claims if those were rare labels.
  for (const std::size_t claimed : {std::size_t{10}, std::size_t{128}}) {
    CHECK(share_of_liar(AwPspOptions::Selector::kWeighted, claimed) < 0.23);
    CHECK(share_of_liar(AwPspOptions::Selector::kGreedyCoverage, claimed) < 0.21);
  }
}

}  // namespace fedge::aggregation
