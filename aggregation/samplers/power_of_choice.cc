#include "aggregation/samplers/power_of_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aggregation/samplers/systematic.h"

namespace fedge::aggregation {

std::vector<Selected> PowerOfChoiceSampler::select(const SelectionRequest& request) {
  const std::size_t wanted = std::min(request.count, request.candidates.size());
  if (wanted == 0) return {};
  const std::size_t d = std::max(wanted, options_.candidates > 0 ? options_.candidates : 2 * request.count);
  std::vector<double> sizes;
  sizes.reserve(request.candidates.size());
  for (const Candidate& candidate : request.candidates)
    sizes.push_back(static_cast<double>(size_of(candidate)));
  const std::vector<double> p = capped_proportional(sizes, d);

  struct Known {
    Selected choice;
    double loss;
  };
  std::vector<Known> known;
  Rng rng = request.rng;
  for (const std::size_t place : systematic_sample(p, rng)) {
    const ClientId client = request.candidates[place].client;
    const auto found = losses_.find(client);
    known.push_back({{client, p[place]},
                     found != losses_.end() ? found->second : std::numeric_limits<double>::infinity()});
  }
  const auto last = known.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, known.size()));
  std::partial_sort(known.begin(), last, known.end(), [](const Known& a, const Known& b) {
    return a.loss != b.loss ? a.loss > b.loss : a.choice.client < b.choice.client;
  });
  std::vector<Selected> selected;
  for (auto entry = known.begin(); entry != last; ++entry) selected.push_back(entry->choice);
  std::sort(selected.begin(), selected.end(),
            [](const Selected& a, const Selected& b) { return a.client < b.client; });
  return selected;
}

void PowerOfChoiceSampler::remember(const Feedback& feedback) {
  if (feedback.delivered && std::isfinite(feedback.loss)) losses_[feedback.client] = feedback.loss;
}

SamplerFactory read_power_of_choice(config::Reader& section) {
  PowerOfChoiceSampler::Options options;
  options.candidates = static_cast<std::size_t>(
      section.integer("candidates", 0, {0, 1'000'000},
                      "Number of clients drawn first, in proportion to their samples. Of these, the clients "
                      "with the highest loss are selected. 0: twice the number of selected clients."));
  return [options]() -> std::unique_ptr<Sampler> { return std::make_unique<PowerOfChoiceSampler>(options); };
}

}  // namespace fedge::aggregation
