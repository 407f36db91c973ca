#include "aggregation/samplers/awpsp/correlation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

// The rounds that both were known in, as low bits.
std::uint64_t common_rounds(const Trace& a, const Trace& b) {
  const unsigned rounds = std::min(a.rounds, b.rounds);
  return rounds >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rounds) - 1;
}

bool is_flipped(const Trace& a, const Trace& b, const CorrelationOptions& options) {
  const auto [first, second] = std::minmax(a.client, b.client);
  return options.stream->fork("flip", first, second).uniform() < options.noise;
}

// The nearest neighbours of a place one after another: `below` and `above` are the next ones on either side.
class NearestFirst {
 public:
  NearestFirst(std::span<const Trace> traces, std::size_t place)
      : traces_(traces), place_(place), below_(place), above_(place + 1) {}

  // Past the end if there is none left.
  std::size_t next() {
    const bool has_below = below_ > 0;
    const bool has_above = above_ < traces_.size();
    if (has_below && (!has_above || distance(below_ - 1) <= distance(above_))) return --below_;
    return has_above ? above_++ : traces_.size();
  }

 private:
  float distance(std::size_t other) const {
    return std::abs(traces_[other].latency - traces_[place_].latency);
  }

  std::span<const Trace> traces_;
  std::size_t place_;
  std::size_t below_;
  std::size_t above_;
};

class Components {
 public:
  explicit Components(std::size_t count) : parent_(count) {
    for (std::size_t i = 0; i < count; ++i) parent_[i] = static_cast<std::uint32_t>(i);
  }
  std::uint32_t root(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The smaller root stays one, so that names do not depend on the order of the pairs.
  void join(std::size_t a, std::size_t b) {
    const std::uint32_t x = root(static_cast<std::uint32_t>(a));
    const std::uint32_t y = root(static_cast<std::uint32_t>(b));
    parent_[std::max(x, y)] = std::min(x, y);
  }
  // By element: its root, or kAlone.
  std::vector<std::uint32_t> names() {
    std::vector<bool> shared(parent_.size());
    for (std::uint32_t i = 0; i < parent_.size(); ++i)
      if (const std::uint32_t top = root(i); top != i) shared[top] = true;
    std::vector<std::uint32_t> result(parent_.size());
    for (std::uint32_t i = 0; i < parent_.size(); ++i) {
      const std::uint32_t top = root(i);
      result[i] = shared[top] ? top : Correlations::kAlone;
    }
    return result;
  }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace

double availability_correlation(const Trace& a, const Trace& b) {
  const std::uint64_t rounds = common_rounds(a, b);
  // The correlation of being down is that of being up.
  const int n = std::popcount(rounds);
  const int x = std::popcount(a.down & rounds);
  const int y = std::popcount(b.down & rounds);
  const int both = std::popcount(a.down & b.down & rounds);
  const int spread = (n * x - x * x) * (n * y - y * y);
  return spread == 0 ? 0.0 : (n * both - x * y) / std::sqrt(static_cast<double>(spread));
}

double co_failure(const Trace& a, const Trace& b) {
  const std::uint64_t rounds = common_rounds(a, b);
  if (rounds == 0) return 0;
  return static_cast<double>(std::popcount(a.failed & b.failed & rounds)) / std::popcount(rounds);
}

double pair_score(const Trace& a, const Trace& b, const CorrelationOptions& options) {
  double score = 0;
  // Who never failed together was never down together either: neither score is above 0.
  if ((a.failed & b.failed & common_rounds(a, b)) != 0)
    score = std::clamp(std::max(availability_correlation(a, b), co_failure(a, b)), 0.0, 1.0);
  if (options.noise > 0 && is_flipped(a, b, options)) score = 1 - score;
  return score;
}

std::vector<std::size_t> neighbours_of(std::span<const Trace> traces, std::size_t place, std::size_t count) {
  std::vector<std::size_t> result;
  NearestFirst nearest(traces, place);
  for (std::size_t at = nearest.next(); at < traces.size() && result.size() < count; at = nearest.next())
    result.push_back(at);
  return result;
}

Correlations correlate(std::span<const Trace> traces, const CorrelationOptions& options, bool clusters) {
  FEDGE_CHECK(options.noise == 0 || options.stream, "noise needs a stream");
  Correlations result;
  result.risk.assign(traces.size(), 0.0);
  Components components(clusters ? traces.size() : 0);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    NearestFirst nearest(traces, i);
    double safe = 1;
    for (std::size_t k = 0; k < options.neighbours; ++k) {
      const std::size_t j = nearest.next();
      if (j == traces.size()) break;
      if (!clusters && !traces[j].failed_now) continue;
      const double score = pair_score(traces[i], traces[j], options);
      if (traces[j].failed_now) safe *= 1 - score;
      if (clusters && score >= options.threshold) components.join(i, j);
    }
    result.risk[i] = 1 - safe;
  }
  if (clusters) result.cluster = components.names();
  return result;
}

}  // namespace fedge::aggregation
