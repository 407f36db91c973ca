#include "aggregation/samplers/sampler.h"

#include <algorithm>
#include <string_view>

#include "aggregation/samplers/awpsp/aw_psp.h"
#include "aggregation/samplers/energy_aware.h"
#include "aggregation/samplers/md.h"
#include "aggregation/samplers/oort.h"
#include "aggregation/samplers/optimal.h"
#include "aggregation/samplers/poisson.h"
#include "aggregation/samplers/power_of_choice.h"
#include "aggregation/samplers/uniform.h"
#include "core/check.h"
#include "core/config/own_part.h"
#include "protocol/limits.h"

namespace fedge::aggregation {

std::uint64_t size_of(const Candidate& candidate) {
  return std::clamp<std::uint64_t>(candidate.samples.value(), 1, protocol::kMaxSamples);
}

std::vector<double> Sampler::probabilities(std::span<const Participant> participants) {
  return std::vector<double>(participants.size(), 1.0);
}

namespace {

std::vector<SamplerKind>& sampler_table() {
  static std::vector<SamplerKind> kinds = {
      SamplerKind{"uniform", "McMahan et al. 2017", "every set of clients is equally likely", read_uniform},
      SamplerKind{"availability", "the baseline of AW-PSP",
                  "clients with a high predicted availability are more likely to be selected",
                  read_availability},
      SamplerKind{
          "aw_psp", "Behfar and Mortier 2026, arXiv:2604.16090",
          "clients with high availability, freshness and new labels are more likely to be selected, and "
          "correlated failures "
          "are avoided; selector greedy is the authors' code, weighted is a reconstruction of the paper",
          read_aw_psp},
      SamplerKind{"optimal", "Chen, Horvath, Richtarik 2022; Dabaja and El-Azouzi 2026",
                  "clients with large updates are more likely to upload, within an upload budget",
                  read_optimal},
      SamplerKind{"poisson", "Horvitz and Thompson 1952 (the estimate)",
                  "every client is drawn independently, so the size of a round varies", read_poisson},
      SamplerKind{"md", "Li et al. 2020 (FedProx); Li et al. 2020 (FedAvg on non-IID data), scheme I",
                  "draws with replacement, in proportion to samples; every draw has the same weight",
                  read_md},
      SamplerKind{"power_of_choice", "Cho, Wang, Joshi 2020 (rpow-d)",
                  "a larger draw in proportion to samples, of which the clients with the highest last known "
                  "loss are selected",
                  read_power_of_choice},
      SamplerKind{
          "oort", "Lai et al. 2021",
          "clients with a high loss that are fast enough, and some clients that never delivered an update",
          read_oort},
      SamplerKind{
          "energy_aware", "a plain relative of published rules",
          "clients with full batteries that have consumed little energy are more likely to be selected",
          read_energy_aware},
      SamplerKind{"psp", "Wang, Catterall, Mortier 2017",
                  "probabilistic synchronous parallel; it selects clients as uniform does, and its barriers "
                  "are options of the schedule",
                  read_uniform},
  };
  return kinds;
}

}  // namespace

std::span<const SamplerKind> sampler_kinds() { return sampler_table(); }

void register_sampler(const SamplerKind& kind) {
  config::register_kind(sampler_table(), kind, "sampler", "a sampler");
}

}  // namespace fedge::aggregation
