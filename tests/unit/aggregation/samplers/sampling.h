// Helpers of the sampler tests: candidates, and a test of how often a sampler draws each candidate against
// the probability that it states.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation::test {

// Clients 0, 3, 6, ... with these numbers of samples.
inline std::vector<Candidate> candidates(const std::vector<std::uint64_t>& samples) {
  std::vector<Candidate> result;
  for (const std::uint64_t n : samples)
    result.push_back({ClientId(static_cast<std::uint32_t>(3 * result.size())), SampleCount(n)});
  return result;
}

inline std::vector<ClientId> clients_of(const std::vector<Selected>& selected) {
  std::vector<ClientId> clients;
  for (const Selected& choice : selected) clients.push_back(choice.client);
  return clients;
}

// Returns the largest (c - T p)^2 / (T p (1 - p)) of a unit that c of T independent draws contained. Each
// term is chi-square with one degree of freedom, however the units of one draw depend on each other. Infinite
// if a draw contained an impossible unit or lacked a certain one.
inline double worst_chi_square(const std::vector<double>& p, const std::vector<std::uint64_t>& counts,
                               double draws) {
  double worst = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double expected = draws * p[i];
    const double difference = static_cast<double>(counts[i]) - expected;
    const double variance = expected * (1 - p[i]);
    if (variance > 1e-9)
      worst = std::max(worst, difference * difference / variance);
    else if (std::abs(difference) > 1e-6)
      return std::numeric_limits<double>::infinity();
  }
  return worst;
}

struct Frequencies {
  std::vector<double> stated;         // inclusion probabilities by candidate; 0 if never drawn
  std::vector<std::uint64_t> counts;  // how often drawn
  bool steady = true;                 // every draw stated the same probabilities
};

// Draws repeatedly from the same sampler state; draw i uses the stream request.rng.fork("sample", i).
inline Frequencies draw_often(Sampler& sampler, const SelectionRequest& request, std::uint64_t draws) {
  Frequencies result{std::vector<double>(request.candidates.size()),
                     std::vector<std::uint64_t>(request.candidates.size())};
  SelectionRequest draw = request;
  for (std::uint64_t i = 0; i < draws; ++i) {
    draw.rng = request.rng.fork("sample", i);
    for (const Selected& choice : sampler.select(draw)) {
      const std::size_t place = choice.client.value() / 3;
      if (result.counts[place]++ > 0 && result.stated[place] != choice.inclusion) result.steady = false;
      result.stated[place] = choice.inclusion;
    }
  }
  return result;
}

inline double worst_chi_square(const Frequencies& frequencies, std::uint64_t draws) {
  return worst_chi_square(frequencies.stated, frequencies.counts, static_cast<double>(draws));
}

// A chi-square of one degree of freedom exceeds this with p = 1e-5; the largest of at most 50 units with p <=
// 5e-4.
inline constexpr double kCriticalChiSquare = 19.51;

}  // namespace fedge::aggregation::test
