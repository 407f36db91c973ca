#include "sim/attacks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fedge::sim {
namespace {

const std::vector<std::string> kNames = {"none", "sign_flip", "gaussian", "label_flip",
                                         "alie", "ipm",       "min_max"};

struct Moments {
  std::vector<double> mean;
  std::vector<double> deviation;
};

Moments moments_of(const std::vector<std::span<const float>>& updates) {
  const std::size_t size = updates.front().size();
  const auto n = static_cast<double>(updates.size());
  Moments moments{std::vector<double>(size), std::vector<double>(size)};
  for (std::size_t i = 0; i < size; ++i) {
    double mean = 0;
    for (const auto& update : updates) mean += static_cast<double>(update[i]);
    mean /= n;
    double squares = 0;
    for (const auto& update : updates) {
      const double distance = static_cast<double>(update[i]) - mean;
      squares += distance * distance;
    }
    moments.mean[i] = mean;
    moments.deviation[i] = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  }
  return moments;
}

// mu - gamma * sd
void shift(const Moments& moments, double gamma, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(moments.mean[i] - gamma * moments.deviation[i]);
}

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double distance = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += distance * distance;
  }
  return sum;
}

// |g_k - (mu - gamma sd)|^2 = a_k + 2 gamma b_k + gamma^2 c, so that the largest gamma is a root.
double largest_gamma(const Moments& moments, const std::vector<std::span<const float>>& honest) {
  double bound = 0;
  for (std::size_t i = 0; i < honest.size(); ++i)
    for (std::size_t j = i + 1; j < honest.size(); ++j)
      bound = std::max(bound, squared_distance(honest[i], honest[j]));
  double c = 0;
  for (const double deviation : moments.deviation) c += deviation * deviation;
  if (c == 0) return 0;
  double gamma = std::numeric_limits<double>::infinity();
  for (const auto& update : honest) {
    double a = 0;
    double b = 0;
    for (std::size_t i = 0; i < update.size(); ++i) {
      const double distance = static_cast<double>(update[i]) - moments.mean[i];
      a += distance * distance;
      b += distance * moments.deviation[i];
    }
    gamma = std::min(gamma, (-b + std::sqrt(std::max(0.0, b * b - c * (a - bound)))) / c);
  }
  return gamma;
}

// The inverse of the standard normal distribution function, by bisection: 60 halvings of [-10, 10].
double normal_quantile(double p) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

double strength_or(const AttackSpec& spec, double fallback) {
  return spec.strength > 0 ? spec.strength : fallback;
}

}  // namespace

AttackSpec read_attack(config::Reader& section) {
  AttackSpec spec;
  spec.kind = static_cast<AttackKind>(
      section.choice("kind", kNames, 0, "What hostile clients hand in; only in virtual time."));
  spec.fraction =
      section.number("fraction", spec.fraction, {0.0, 1.0}, "Part of the clients that is hostile.");
  spec.strength =
      section.number("strength", 0.0, {0.0, 1e6},
                     "sign_flip: factor (1), gaussian: standard deviation (10), alie: z (computed), "
                     "ipm: factor (0.5); 0 = what stands in brackets.");
  return spec;
}

std::vector<bool> choose_attackers(const AttackSpec& spec, std::size_t clients, const Rng& rng) {
  std::vector<bool> hostile(clients, false);
  if (spec.kind == AttackKind::kNone) return hostile;
  std::vector<std::size_t> order(clients);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng draws = rng.fork("attackers");
  draws.shuffle(std::span(order));
  // 0.29 * 100 is a little less than 29 in binary.
  const auto count = static_cast<std::size_t>(spec.fraction * static_cast<double>(clients) + 1e-9);
  for (std::size_t i = 0; i < count; ++i) hostile[order[i]] = true;
  return hostile;
}

double alie_z(std::size_t n, std::size_t m) {
  const std::size_t half = n / 2 + 1;
  const std::size_t supporters = half > m ? half - m : 0;
  if (m >= n || supporters >= n - m) return 0;
  return normal_quantile(static_cast<double>(n - m - supporters) / static_cast<double>(n - m));
}

void attack(const AttackSpec& spec, const std::vector<std::span<const float>>& honest, std::size_t hostile,
            Rng rng, std::span<float> update) {
  if (spec.needs_honest() && honest.empty()) return;
  switch (spec.kind) {
    case AttackKind::kNone:
    case AttackKind::kLabelFlip:
      return;
    case AttackKind::kSignFlip:
      for (float& value : update)
        value = static_cast<float>(-strength_or(spec, 1.0) * static_cast<double>(value));
      return;
    case AttackKind::kGaussian:
      for (float& value : update) value = static_cast<float>(strength_or(spec, 10.0) * rng.normal());
      return;
    case AttackKind::kAlie: {
      const double z = strength_or(spec, std::max(0.3, alie_z(honest.size() + hostile, hostile)));
      return shift(moments_of(honest), z, update);
    }
    case AttackKind::kIpm: {
      const Moments moments = moments_of(honest);
      for (std::size_t i = 0; i < update.size(); ++i)
        update[i] = static_cast<float>(-strength_or(spec, 0.5) * moments.mean[i]);
      return;
    }
    case AttackKind::kMinMax: {
      const Moments moments = moments_of(honest);
      return shift(moments, largest_gamma(moments, honest), update);
    }
  }
}

}  // namespace fedge::sim
