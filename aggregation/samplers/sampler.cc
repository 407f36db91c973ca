#include "aggregation/samplers/sampler.h"

#include <array>

#include "aggregation/samplers/uniform.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

struct Entry {
  const char* kind;
  std::unique_ptr<Sampler> (*make)(const SamplingSpec&);
};

constexpr std::array kSamplers = {
    Entry{"uniform",
          [](const SamplingSpec&) -> std::unique_ptr<Sampler> { return std::make_unique<UniformSampler>(); }},
};

}  // namespace

std::vector<std::string> sampler_kinds() {
  std::vector<std::string> kinds;
  kinds.reserve(kSamplers.size());
  for (const Entry& entry : kSamplers) kinds.emplace_back(entry.kind);
  return kinds;
}

std::unique_ptr<Sampler> make_sampler(const SamplingSpec& spec) {
  for (const Entry& entry : kSamplers)
    if (spec.kind == entry.kind) return entry.make(spec);
  FEDGE_CHECK(false, "no sampler of this kind: " + spec.kind);
}

}  // namespace fedge::aggregation
