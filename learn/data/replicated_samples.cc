#include "learn/data/replicated_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fedge::learn {
namespace {

using ByClass = std::vector<std::vector<std::uint32_t>>;

// Appends `count` different ones of `samples` (Floyd's algorithm: Bentley and Floyd, CACM 30(9), 1987).
// O(count^2) for small counts, else O(samples).
void draw_different(std::span<const std::uint32_t> samples, std::size_t count, Rng& rng,
                    std::vector<std::uint32_t>& out) {
  constexpr std::size_t kFew = 64;
  const std::size_t size = samples.size();
  if (count <= kFew) {
    const std::size_t first = out.size();
    for (std::size_t i = size - count; i < size; ++i) {
      const std::uint32_t drawn = samples[rng.below(i + 1)];
      const bool known =
          std::find(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), drawn) != out.end();
      out.push_back(known ? samples[i] : drawn);
    }
    return;
  }
  std::vector<bool> taken(size, false);
  for (std::size_t i = size - count; i < size; ++i) {
    const std::size_t drawn = rng.below(i + 1);
    taken[taken[drawn] ? i : drawn] = true;
  }
  for (std::size_t i = 0; i < size; ++i)
    if (taken[i]) out.push_back(samples[i]);
}

}  // namespace

// Normalised Gamma variates. Works with their logarithms, because with a small alpha all of them may be below
// the smallest double.
void draw_dirichlet(double alpha, Rng& rng, std::span<double> out) {
  double largest = -std::numeric_limits<double>::infinity();
  for (double& value : out) {
    // Gamma(a) = Gamma(a + 1) * U^(1/a)
    value = alpha < 1.0 ? std::log(rng.gamma(alpha + 1.0)) + std::log(1.0 - rng.uniform()) / alpha
                        : std::log(rng.gamma(alpha));
    largest = std::max(largest, value);
  }
  double sum = 0;
  for (double& value : out) {
    value = std::exp(value - largest);
    sum += value;
  }
  for (double& value : out) value /= sum;
}

std::size_t draw_class(std::span<const double> mix, std::span<const std::size_t> left, Rng& rng) {
  double mass = 0;
  std::size_t total = 0;
  for (std::size_t k = 0; k < mix.size(); ++k) {
    if (left[k] > 0) mass += mix[k];
    total += left[k];
  }
  std::size_t chosen = 0;
  if (mass > 0) {
    double point = rng.uniform() * mass;
    for (std::size_t k = 0; k < mix.size(); ++k) {
      if (left[k] == 0 || mix[k] <= 0) continue;
      chosen = k;  // rounding may leave a small remainder of `point` after the last one
      if (point < mix[k]) break;
      point -= mix[k];
    }
    return chosen;
  }
  std::size_t point = rng.below(total);
  while (point >= left[chosen]) point -= left[chosen++];
  return chosen;
}

ReplicatedSamples::ReplicatedSamples(ByClass by_class, double alpha, std::size_t samples_per_client,
                                     const Rng& rng)
    : alpha_(alpha), samples_per_client_(samples_per_client), rng_(rng) {
  if (alpha == 0) {
    ByClass together(1);
    for (const auto& samples : by_class)
      together.front().insert(together.front().end(), samples.begin(), samples.end());
    std::ranges::sort(together.front());
    by_class = std::move(together);
  }
  by_class_ = std::make_shared<const ByClass>(std::move(by_class));
}

// Draws how many samples of each class a client holds.
std::vector<std::size_t> ReplicatedSamples::draw_sizes(Rng& rng) const {
  if (alpha_ == 0) return {samples_per_client_};
  const std::size_t classes = by_class_->size();
  std::vector<std::size_t> left(classes);
  for (std::size_t k = 0; k < classes; ++k) left[k] = (*by_class_)[k].size();
  std::vector<double> mix(classes);
  draw_dirichlet(alpha_, rng, mix);
  std::vector<std::size_t> counts(classes, 0);
  for (std::size_t i = 0; i < samples_per_client_; ++i) {
    const std::size_t k = draw_class(mix, left, rng);
    --left[k];
    ++counts[k];
  }
  return counts;
}

std::vector<std::uint32_t> ReplicatedSamples::of(std::size_t client) const {
  Rng rng = rng_.fork("mix", client);
  const std::vector<std::size_t> counts = draw_sizes(rng);
  std::vector<std::uint32_t> samples;
  samples.reserve(samples_per_client_);
  for (std::size_t k = 0; k < counts.size(); ++k)
    if (counts[k] > 0) draw_different((*by_class_)[k], counts[k], rng, samples);
  std::ranges::sort(samples);
  return samples;
}

ReplicatedSamples ReplicatedSamples::renamed(std::span<const std::uint32_t> names) const {
  ReplicatedSamples result = *this;
  ByClass by_class = *by_class_;
  for (auto& samples : by_class)
    for (std::uint32_t& sample : samples) sample = names[sample];
  result.by_class_ = std::make_shared<const ByClass>(std::move(by_class));
  return result;
}

}  // namespace fedge::learn
