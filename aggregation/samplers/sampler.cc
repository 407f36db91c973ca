#include "aggregation/samplers/sampler.h"

#include <array>

#include "aggregation/samplers/optimal.h"
#include "aggregation/samplers/uniform.h"

namespace fedge::aggregation {

std::vector<double> Sampler::probabilities(std::span<const TrainedClient> trained) {
  return std::vector<double>(trained.size(), 1.0);
}

std::span<const SamplerKind> sampler_kinds() {
  static constexpr std::array kKinds = {
      SamplerKind{"uniform", "McMahan et al. 2017", "every set of clients is equally likely", read_uniform},
      SamplerKind{"optimal", "Chen, Horvath, Richtarik 2022; Dabaja and El-Azouzi 2026",
                  "all selected clients train, those whose updates matter upload", read_optimal},
  };
  return kKinds;
}

}  // namespace fedge::aggregation
