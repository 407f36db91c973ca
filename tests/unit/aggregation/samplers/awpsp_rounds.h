// Rounds of AW-PSP's sampler for tests: everybody's selection, feedback and stated probabilities.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "aggregation/samplers/awpsp/aw_psp.h"

namespace fedge::aggregation::test {

using Selector = AwPspOptions::Selector;
using Risk = AwPspOptions::Risk;
using Labels = protocol::LabelReport;

inline constexpr double kNever = std::numeric_limits<double>::quiet_NaN();

inline std::vector<Candidate> there(const std::vector<unsigned>& clients) {
  std::vector<Candidate> result;
  for (const unsigned client : clients) result.push_back({ClientId(client), SampleCount(10 + client)});
  return result;
}

inline std::vector<unsigned> everybody(unsigned count) {
  std::vector<unsigned> clients;
  for (unsigned i = 0; i < count; ++i) clients.push_back(i);
  return clients;
}

inline std::vector<Selected> select(AwPspSampler& sampler, unsigned round,
                                    const std::vector<unsigned>& clients, std::size_t count,
                                    std::uint64_t seed = 1) {
  const auto pool = there(clients);
  return sampler.select({RoundNumber(round), pool, count, Rng(seed).fork("sample", round)});
}

inline void finish(AwPspSampler& sampler, const std::vector<Selected>& chosen, unsigned round,
                   bool delivered = true) {
  for (const Selected& choice : chosen)
    sampler.remember({.client = choice.client, .round = RoundNumber(round), .delivered = delivered});
}

inline bool holds(const std::vector<Selected>& chosen, unsigned client) {
  return std::any_of(chosen.begin(), chosen.end(),
                     [&](const Selected& choice) { return choice.client == ClientId(client); });
}

inline std::map<unsigned, double> inclusions(const std::vector<Selected>& chosen) {
  std::map<unsigned, double> p;
  for (const Selected& choice : chosen) p[choice.client.value()] = choice.inclusion;
  return p;
}

// Returns the selection that copies of the sampler state for each candidate, over repeated draws.
inline std::map<unsigned, Selected> stated(const AwPspSampler& sampler, unsigned round,
                                           const std::vector<unsigned>& clients, std::size_t count) {
  std::map<unsigned, Selected> result;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    AwPspSampler copy = sampler;
    for (const Selected& choice : select(copy, round, clients, count, seed))
      result.emplace(choice.client.value(), choice);
  }
  return result;
}

inline AwPspOptions plain_psp() {
  return {.a = 0, .b = 0, .c = 0, .d = 0, .risk = Risk::kNone, .diversity = false};
}

}  // namespace fedge::aggregation::test
