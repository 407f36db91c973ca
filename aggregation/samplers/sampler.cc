#include "aggregation/samplers/sampler.h"

#include <array>

#include "aggregation/samplers/awpsp/aw_psp.h"
#include "aggregation/samplers/optimal.h"
#include "aggregation/samplers/uniform.h"

namespace fedge::aggregation {

std::vector<double> Sampler::probabilities(std::span<const Participant> participants) {
  return std::vector<double>(participants.size(), 1.0);
}

std::span<const SamplerKind> sampler_kinds() {
  static constexpr std::array kKinds = {
      SamplerKind{"uniform", "McMahan et al. 2017", "every set of clients is equally likely", read_uniform},
      SamplerKind{"availability", "the baseline of AW-PSP", "by predicted availability alone",
                  read_availability},
      SamplerKind{
          "aw_psp", "Behfar and Mortier 2026, arXiv:2604.16090",
          "by availability, freshness, labels and correlated failures; greedy is the authors' code, weighted "
          "our reconstruction of the paper",
          read_aw_psp},
      SamplerKind{"optimal", "Chen, Horvath, Richtarik 2022; Dabaja and El-Azouzi 2026",
                  "those whose updates matter contribute, within a budget of upload", read_optimal},
  };
  return kKinds;
}

}  // namespace fedge::aggregation
