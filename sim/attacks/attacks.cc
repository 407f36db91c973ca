#include "sim/attacks/attacks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/availability/normal.h"

namespace fedge::sim {
namespace {

const std::vector<std::string> kAttackNames = {"none", "sign_flip", "gaussian", "label_flip",
                                               "alie", "ipm",       "min_max"};

struct Moments {
  std::vector<double> mean;
  std::vector<double> deviation;
};

// Values of each honest update in memory at a time.
constexpr std::size_t kAttackPiece = std::size_t{1} << 14;

using Rows = std::vector<std::span<const float>>;

// Calls visit(first, rows) for consecutive pieces of the updates: parameters first, first + 1, ... .
template <class Visit>
Result<void> for_each_piece(const Updates& updates, std::size_t size, const Visit& visit) {
  const std::size_t piece = std::min(kAttackPiece, size);
  std::vector<float> buffer(updates.size() * piece);
  Rows rows(updates.size());
  for (std::size_t first = 0; first < size; first += piece) {
    const std::size_t count = std::min(piece, size - first);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const std::span<float> row = std::span(buffer).subspan(i * piece, count);
      FEDGE_TRY_VOID(updates[i]->read(first, row));
      rows[i] = row;
    }
    visit(first, rows);
  }
  return {};
}

Result<Moments> moments_of(const Updates& updates, std::size_t size) {
  const auto n = static_cast<double>(updates.size());
  Moments moments{std::vector<double>(size), std::vector<double>(size)};
  FEDGE_TRY_VOID(for_each_piece(updates, size, [&](std::size_t first, const Rows& rows) {
    for (std::size_t i = 0; i < rows.front().size(); ++i) {
      double mean = 0;
      for (const auto& row : rows) mean += static_cast<double>(row[i]);
      mean /= n;
      double squares = 0;
      for (const auto& row : rows) {
        const double distance = static_cast<double>(row[i]) - mean;
        squares += distance * distance;
      }
      moments.mean[first + i] = mean;
      moments.deviation[first + i] = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
    }
  }));
  return moments;
}

// out = mu - gamma * sd.
void shift(const Moments& moments, double gamma, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(moments.mean[i] - gamma * moments.deviation[i]);
}

void add_squared_distance(std::span<const float> a, std::span<const float> b, double& sum) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double distance = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += distance * distance;
  }
}

// |g_k - (mu - gamma sd)|^2 = a_k + 2 gamma b_k + gamma^2 c; the largest gamma is a root.
Result<double> largest_gamma(const Moments& moments, const Updates& honest) {
  const std::size_t n = honest.size();
  std::vector<double> between(n * n);
  std::vector<double> a(n);
  std::vector<double> b(n);
  FEDGE_TRY_VOID(for_each_piece(honest, moments.mean.size(), [&](std::size_t first, const Rows& rows) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t other = k + 1; other < n; ++other)
        add_squared_distance(rows[k], rows[other], between[k * n + other]);
      for (std::size_t i = 0; i < rows[k].size(); ++i) {
        const double distance = static_cast<double>(rows[k][i]) - moments.mean[first + i];
        a[k] += distance * distance;
        b[k] += distance * moments.deviation[first + i];
      }
    }
  }));
  const double bound = *std::max_element(between.begin(), between.end());
  double c = 0;
  for (const double deviation : moments.deviation) c += deviation * deviation;
  if (c == 0) return 0.0;
  double gamma = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < n; ++k)
    gamma = std::min(gamma, (-b[k] + std::sqrt(std::max(0.0, b[k] * b[k] - c * (a[k] - bound)))) / c);
  return gamma;
}

double strength_or(const AttackSpec& spec, double fallback) {
  return spec.strength > 0 ? spec.strength : fallback;
}

}  // namespace

AttackSpec read_attack(config::Reader& section) {
  AttackSpec spec;
  spec.kind = static_cast<AttackKind>(
      section.choice("kind", kAttackNames, 0,
                     "What hostile clients submit. Only simulations in virtual time use this key."));
  spec.fraction =
      section.number("fraction", spec.fraction, {0.0, 1.0}, "Fraction of the clients that are hostile.");
  spec.strength = section.number(
      "strength", 0.0, {0.0, 1e6},
      "Strength of the attack. sign_flip: factor (default 1); gaussian: standard deviation (default 10); "
      "alie: z (default: computed); ipm: factor (default 0.5). 0 = the default.");
  return spec;
}

std::vector<bool> choose_attackers(const AttackSpec& spec, std::size_t clients, const Rng& rng) {
  std::vector<bool> hostile(clients, false);
  if (spec.kind == AttackKind::kNone) return hostile;
  std::vector<std::size_t> order(clients);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng draws = rng.fork("attackers");
  draws.shuffle(std::span(order));
  // Rounding guard: 0.29 * 100 is slightly below 29 in binary.
  const auto count = static_cast<std::size_t>(spec.fraction * static_cast<double>(clients) + 1e-9);
  for (std::size_t i = 0; i < count; ++i) hostile[order[i]] = true;
  return hostile;
}

double alie_z(std::size_t n, std::size_t m) {
  const std::size_t half = n / 2 + 1;
  const std::size_t supporters = half > m ? half - m : 0;
  if (m >= n || supporters >= n - m) return 0;
  // A hostile majority needs no supporters: any distance works.
  return std::min(10.0,
                  normal_quantile(static_cast<double>(n - m - supporters) / static_cast<double>(n - m)));
}

Result<void> attack(const AttackSpec& spec, const Updates& honest, std::size_t hostile, Rng rng,
                    std::span<float> update) {
  if (spec.needs_honest() && honest.empty()) return {};
  switch (spec.kind) {
    case AttackKind::kNone:
    case AttackKind::kLabelFlip:
      return {};
    case AttackKind::kSignFlip:
      for (float& value : update)
        value = static_cast<float>(-strength_or(spec, 1.0) * static_cast<double>(value));
      return {};
    case AttackKind::kGaussian:
      for (float& value : update) value = static_cast<float>(strength_or(spec, 10.0) * rng.normal());
      return {};
    case AttackKind::kAlie: {
      const double z = strength_or(spec, std::max(0.3, alie_z(honest.size() + hostile, hostile)));
      FEDGE_TRY(moments, moments_of(honest, update.size()));
      shift(moments, z, update);
      return {};
    }
    case AttackKind::kIpm: {
      FEDGE_TRY(moments, moments_of(honest, update.size()));
      for (std::size_t i = 0; i < update.size(); ++i)
        update[i] = static_cast<float>(-strength_or(spec, 0.5) * moments.mean[i]);
      return {};
    }
    case AttackKind::kMinMax: {
      FEDGE_TRY(moments, moments_of(honest, update.size()));
      FEDGE_TRY(gamma, largest_gamma(moments, honest));
      shift(moments, gamma, update);
      return {};
    }
  }
  return {};
}

}  // namespace fedge::sim
