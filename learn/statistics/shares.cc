#include "learn/statistics/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/check.h"

namespace fedge::learn {
namespace {

using Shape = StatisticsShape;

// A number of this many standard deviations is hardly ever noise, also as the largest of all bins.
constexpr double kClear = 4.5;
// The mean of a column must be known within this share of its range.
constexpr double kCoarsest = 0.25;

// Bounds the shares of all clients together: 2^30 times this fits into a sum.
constexpr std::int64_t kMostShares = std::int64_t{1} << 32;

Error wrong_shares(const std::string& what) { return invalid("the shares of the statistics " + what); }

std::int64_t part(std::int64_t count, std::int64_t whole, double of) {
  return static_cast<std::int64_t>(static_cast<double>(count) * static_cast<double>(whole) / of);
}

std::int64_t nearest_part(std::int64_t sum, std::int64_t whole, double of) {
  return std::min(whole, static_cast<std::int64_t>(
                             std::llround(static_cast<double>(sum) * static_cast<double>(whole) / of)));
}

// The first bin, from the left, at which the values stand out of the noise; by itself or together with those
// before it. The number of bins: there is none.
std::size_t first_clear(std::span<const std::int64_t> bins, double deviation, bool from_right) {
  double sum = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const auto here = static_cast<double>(bins[from_right ? bins.size() - 1 - i : i]);
    sum += here;
    if (here > kClear * deviation || sum > kClear * deviation * std::sqrt(static_cast<double>(i + 1)))
      return from_right ? bins.size() - 1 - i : i;
  }
  return bins.size();
}

// Scales counts so that they add up to `total`; the largest takes what rounding leaves. All are 0 or more,
// one is above.
void scale_to(std::span<std::int64_t> counts, std::int64_t total) {
  const auto sum = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  const auto largest = std::ranges::max_element(counts);
  std::int64_t given = 0;
  for (std::int64_t& count : counts) {
    count = std::min(part(count, total, sum), total - given);
    given += count;
  }
  *largest += total - given;
}

// The variance of the values in these bins, each in the middle of its bin, in units of their range.
double variance_of(std::span<const std::int64_t> bins, std::span<const float> edges) {
  double count = 0;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const auto here = static_cast<double>(bins[i]);
    const double at = ((static_cast<double>(edges[i]) + static_cast<double>(edges[i + 1])) / 2 -
                       static_cast<double>(edges.front())) /
                      (static_cast<double>(edges.back()) - static_cast<double>(edges.front()));
    count += here;
    sum += here * at;
    squares += here * at * at;
  }
  const double mean = sum / count;
  return std::max(squares / count - mean * mean, 0.0);
}

// Bins in which values stand out of the noise, and a half of their width on either side: it hides the tails.
struct Stretch {
  std::size_t low = 0;
  std::size_t high = 0;  // included
};
Stretch widened(Stretch bins, std::span<const float> edges) {
  const auto at = [&](std::size_t edge) { return static_cast<double>(edges[edge]); };
  const double low = at(bins.low);
  const double high = at(bins.high + 1);
  while (bins.low > 0 && at(bins.low) > low - (high - low) / 2) --bins.low;
  while (bins.high + 2 < edges.size() && at(bins.high + 1) < high + (high - low) / 2) ++bins.high;
  return bins;
}

Stretch clear_bins(std::span<const std::int64_t> bins, double deviation) {
  const std::size_t low = first_clear(bins, deviation, false);
  const std::size_t high = first_clear(bins, deviation, true);
  if (low == bins.size() || high == bins.size()) return {0, bins.size() - 1};
  return {std::min(low, high), std::max(low, high)};
}

struct Total {
  std::int64_t all = 0;  // wholes of all clients, times the whole
  double deviation = 0;
};

// Writes a column's counts. False if the noise hides them.
bool clean_column(std::span<const std::int64_t> shares, const Total& total, const StepEdges& step,
                  std::span<std::int64_t> counts) {
  const auto bins = counts.subspan(Shape::kBins);
  const auto noisy = shares.subspan(Shape::kBins);
  std::int64_t missing = shares[Shape::kMissing];
  if (static_cast<double>(missing) < kClear * total.deviation) missing = 0;
  const std::int64_t present = total.all - std::min(missing, total.all);
  counts[Shape::kMissing] = total.all - present;
  if (present == 0) return true;
  const double error = kLikelyNoise * std::sqrt(2.0) * total.deviation / static_cast<double>(present);
  if (error > kCoarsest) return false;
  Stretch clear = clear_bins(noisy, total.deviation);
  if (step.widens) clear = widened(clear, step.edges);
  const auto [low, high] = clear;
  for (std::size_t i = low; i <= high; ++i) bins[i] = std::max<std::int64_t>(noisy[i], 0);
  bins[low] = std::max<std::int64_t>(bins[low], 1);
  bins[high] = std::max<std::int64_t>(bins[high], 1);
  scale_to(bins.subspan(low, high - low + 1), present);
  const auto share = [&](std::size_t at) {
    return std::clamp(static_cast<double>(shares[at]) / static_cast<double>(present), 0.0, 1.0);
  };
  const double mean = share(Shape::kSum);
  double variance = share(Shape::kSquares) - mean * mean;
  if (variance < error) variance = std::max(variance, variance_of(bins, step.edges));
  const double squares = std::min(mean * mean + variance, mean);
  const double most = static_cast<double>(present) * static_cast<double>(Shape::kUnits);
  counts[Shape::kSum] = static_cast<std::int64_t>(most * mean);
  counts[Shape::kSquares] = static_cast<std::int64_t>(most * squares * static_cast<double>(Shape::kUnits));
  return true;
}

void clean_labels(const Shape& shape, std::span<const std::int64_t> shares, std::int64_t all,
                  std::span<std::int64_t> counts) {
  for (std::size_t k = 0; k < shape.labels; ++k) counts[k] = std::clamp<std::int64_t>(shares[k], 0, all);
  if (shape.points == 0 || shape.labels == 0) return;
  if (std::ranges::all_of(counts, [](std::int64_t count) { return count == 0; })) counts[0] = 1;
  scale_to(counts, all);
}

}  // namespace

double share_norm(const Shape& shape) {
  const double labels = shape.points > 0 ? std::min<double>(1, static_cast<double>(shape.labels))
                                         : static_cast<double>(shape.labels);
  return std::sqrt(1 + labels + 3 * static_cast<double>(shape.columns));
}

std::vector<std::int64_t> shares_of(const Shape& shape, std::span<const std::int64_t> counts) {
  const auto samples = static_cast<double>(counts[Shape::kSamples]);
  std::vector<std::int64_t> shares(counts.size());
  shares[Shape::kClients] = shape.whole;
  const double labels = samples * std::max<double>(1, static_cast<double>(shape.points));
  for (std::size_t k = Shape::kLabels; k < Shape::kLabels + shape.labels; ++k)
    shares[k] = part(counts[k], shape.whole, labels);
  constexpr auto kUnit = static_cast<double>(Shape::kUnits);
  for (std::size_t c = 0; c < shape.columns; ++c) {
    const std::size_t first = shape.column(c);
    const double values = samples * static_cast<double>(shape.values(c));
    shares[first + Shape::kMissing] = part(counts[first + Shape::kMissing], shape.whole, values);
    shares[first + Shape::kSum] = nearest_part(counts[first + Shape::kSum], shape.whole, values * kUnit);
    shares[first + Shape::kSquares] =
        nearest_part(counts[first + Shape::kSquares], shape.whole, values * kUnit * kUnit);
    for (std::size_t b = first + Shape::kBins; b < first + Shape::kBins + shape.bins; ++b)
      shares[b] = part(counts[b], shape.whole, values);
  }
  return shares;
}

Result<void> check_shares(const Shape& shape, std::span<const std::int64_t> shares) {
  if (shares.size() != shape.size())
    return wrong_shares("are " + std::to_string(shares.size()) + " numbers, expected " +
                        std::to_string(shape.size()));
  const std::int64_t all = shares[Shape::kClients];
  if (all != shape.whole) return wrong_shares("are not of one client");
  if (shares[Shape::kSamples] != 0) return wrong_shares("have a number of samples");
  for (const std::int64_t share : shares)
    if (share < 0 || share > all) return wrong_shares("have one that is not between 0 and the whole");
  const auto sum = [&](std::size_t first, std::size_t count) {
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) total += static_cast<double>(shares[first + i]);
    return total;
  };
  if (shape.points > 0 && sum(Shape::kLabels, shape.labels) > static_cast<double>(all))
    return wrong_shares("of the labels are more than the whole");
  for (std::size_t c = 0; c < shape.columns; ++c) {
    const std::size_t first = shape.column(c);
    const double missing = static_cast<double>(shares[first + Shape::kMissing]);
    if (missing + sum(first + Shape::kBins, shape.bins) > static_cast<double>(all))
      return wrong_shares("of a column are more than the whole");
  }
  return {};
}

Result<std::vector<std::int64_t>> without_noise(const Shape& shape, std::span<const std::int64_t> shares,
                                                double deviation, const StepEdges& step,
                                                std::span<const std::string> names) {
  FEDGE_CHECK(shares.size() == shape.size() && names.size() == shape.columns, "shares of this shape");
  const std::size_t each = shape.bins + 1;
  // Whatever the members of a masked sum have added: the numbers stay far from those of their type.
  std::vector<std::int64_t> bounded(shares.begin(), shares.end());
  for (std::int64_t& share : bounded) share = std::clamp(share, -kMostShares, kMostShares);
  shares = bounded;
  const std::int64_t clients = std::clamp<std::int64_t>(
      (shares[Shape::kClients] + shape.whole / 2) / shape.whole, 1, kMostShares / shape.whole);
  const Total total{clients * shape.whole, deviation};
  std::vector<std::int64_t> counts(shape.size());
  counts[Shape::kClients] = clients;
  counts[Shape::kSamples] = total.all;
  const auto labels = std::span(counts).subspan(Shape::kLabels, shape.labels);
  clean_labels(shape, shares.subspan(Shape::kLabels, shape.labels), total.all, labels);
  for (std::size_t c = 0; c < shape.columns; ++c) {
    const std::size_t size = Shape::kBins + shape.bins;
    if (clean_column(shares.subspan(shape.column(c), size), total,
                     {step.edges.subspan(c * each, each), step.widens},
                     std::span(counts).subspan(shape.column(c), size)))
      continue;
    return invalid("the noise hides the values of column " + names[c] +
                   ": there are too few clients for statistics with this privacy budget; lower "
                   "differential_privacy.statistics_noise, or set data.mean and data.deviation");
  }
  return counts;
}

}  // namespace fedge::learn
