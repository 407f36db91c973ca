#include "aggregation/samplers/md.h"

#include <algorithm>
#include <cmath>

namespace fedge::aggregation {

std::vector<Selected> MdSampler::select(const SelectionRequest& request) {
  std::vector<Selected> selected;
  if (request.candidates.empty() || request.count == 0) return selected;
  // Integers make the draw exact; sums over fewer than 2^24 candidates cannot overflow.
  std::vector<std::uint64_t> up_to;  // cumulative samples, including this candidate
  up_to.reserve(request.candidates.size());
  std::uint64_t all = 0;
  for (const Candidate& candidate : request.candidates) up_to.push_back(all += size_of(candidate));
  std::vector<std::size_t> drawn;
  drawn.reserve(request.count);
  Rng rng = request.rng;
  for (std::size_t i = 0; i < request.count; ++i)
    drawn.push_back(static_cast<std::size_t>(std::upper_bound(up_to.begin(), up_to.end(), rng.below(all)) -
                                             up_to.begin()));
  std::sort(drawn.begin(), drawn.end());
  const auto draws = static_cast<double>(request.count);
  for (auto first = drawn.begin(); first != drawn.end();) {
    const auto last = std::upper_bound(first, drawn.end(), *first);
    const Candidate& candidate = request.candidates[*first];
    const double p = static_cast<double>(size_of(candidate)) / static_cast<double>(all);
    selected.push_back({.client = candidate.client,
                        .inclusion = -std::expm1(draws * std::log1p(-p)),
                        .coefficient = static_cast<double>(last - first) / draws});
    first = last;
  }
  return selected;
}

SamplerFactory read_md(config::Reader&) {
  return []() -> std::unique_ptr<Sampler> { return std::make_unique<MdSampler>(); };
}

}  // namespace fedge::aggregation
