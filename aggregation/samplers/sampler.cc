#include "aggregation/samplers/sampler.h"

#include <array>

#include "aggregation/samplers/optimal.h"
#include "aggregation/samplers/uniform.h"

namespace fedge::aggregation {

std::vector<double> Sampler::probabilities(std::span<const Participant> participants) {
  return std::vector<double>(participants.size(), 1.0);
}

std::span<const SamplerKind> sampler_kinds() {
  static constexpr std::array kKinds = {
      SamplerKind{"uniform", "McMahan et al. 2017", "every set of clients is equally likely", read_uniform},
      SamplerKind{"optimal", "Chen, Horvath, Richtarik 2022; Dabaja and El-Azouzi 2026",
                  "those whose updates matter contribute, within a budget of upload", read_optimal},
  };
  return kKinds;
}

}  // namespace fedge::aggregation
