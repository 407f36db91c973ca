#include "aggregation/samplers/poisson.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/crypto/keystream.h"

namespace fedge::aggregation {
namespace {

// Uniform in [0, 1), 53 bits, from a keystream: the next draw is unpredictable without the key.
class SecretUniform {
 public:
  explicit SecretUniform(const Secret& key) : stream_(StreamCipher::kChaCha20) { stream_.start(key); }
  double operator()() {
    std::array<std::uint8_t, 8> bytes{};
    stream_.next(bytes);
    std::uint64_t value = 0;
    for (const std::uint8_t byte : bytes) value = value << 8 | byte;
    return static_cast<double>(value >> 11) * 0x1p-53;
  }

 private:
  Keystream stream_;
};

// Draws each of `count` places with probability q in (0, 1), using the lengths of the gaps between them:
// P(gap >= k) = (1 - q)^k.
template <class Uniform>
std::vector<std::size_t> draw_places(std::size_t count, double q, Uniform uniform) {
  std::vector<std::size_t> places;
  const double log_stay = std::log1p(-q);
  std::size_t next = 0;
  while (true) {
    const double gap = std::floor(std::log(1 - uniform()) / log_stay);
    if (!(gap < static_cast<double>(count - next))) return places;
    next += static_cast<std::size_t>(gap);
    places.push_back(next++);
  }
}

}  // namespace

std::vector<Selected> PoissonSampler::select(const SelectionRequest& request) {
  const std::span<const Candidate> candidates = request.candidates.all();
  std::vector<Selected> selected;
  if (candidates.empty()) return selected;
  const double wanted = static_cast<double>(request.count) / static_cast<double>(candidates.size());
  const double q = std::min(1.0, options_.rate > 0 ? options_.rate : wanted);
  if (q >= 1) {
    for (const Candidate& candidate : candidates) selected.push_back({candidate.client});
  } else if (q > 0) {
    const auto places =
        request.secret != nullptr
            ? draw_places(candidates.size(), q, SecretUniform(*request.secret))
            : draw_places(candidates.size(), q, [rng = request.rng]() mutable { return rng.uniform(); });
    for (const std::size_t place : places) selected.push_back({candidates[place].client, q});
  }
  if (options_.weights == Weights::kSamples) return selected;
  double all = 0;
  for (const Candidate& candidate : candidates) all += static_cast<double>(size_of(candidate));
  auto candidate = candidates.begin();
  for (Selected& choice : selected) {
    while (candidate->client != choice.client) ++candidate;
    choice.coefficient = static_cast<double>(size_of(*candidate)) / (all * q);
  }
  return selected;
}

SamplerFactory read_poisson(config::Reader& section) {
  PoissonSampler::Options options;
  options.rate =
      section.number("rate", options.rate, {0.0, 1.0},
                     "Probability that a client takes part. 0: clients_per_round times over_selection, "
                     "divided by the number of connected clients. With differential_privacy.kind = "
                     "\"central\", 0: clients_per_round divided by data.partition.clients.");
  options.weights = static_cast<PoissonSampler::Weights>(
      section.choice("weights", {"samples", "ipw"}, 0,
                     "Weight of an update.\nsamples: its number of samples.\nipw: its fraction of the "
                     "samples of all candidates, divided by its probability; this is unbiased."));
  return [options]() -> std::unique_ptr<Sampler> { return std::make_unique<PoissonSampler>(options); };
}

SamplerFactory poisson_at(double rate) {
  return [rate]() -> std::unique_ptr<Sampler> {
    return std::make_unique<PoissonSampler>(PoissonSampler::Options{.rate = rate});
  };
}

}  // namespace fedge::aggregation
