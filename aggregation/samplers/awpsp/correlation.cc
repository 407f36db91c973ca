#include "aggregation/samplers/awpsp/correlation.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

// std::popcount is a call where the instruction set is the oldest.
int ones(std::uint64_t x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<int>(x * 0x0101010101010101 >> 56);
}

// The rounds that both were known in, as low bits.
std::uint64_t common_rounds(const Trace& a, const Trace& b) {
  const unsigned rounds = std::min(a.rounds, b.rounds);
  return rounds >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rounds) - 1;
}

// Of those rounds: all, those with a down, with b down, with both down, with both failed.
struct Counts {
  int n = 0;
  int x = 0;
  int y = 0;
  int both_down = 0;
  int both_failed = 0;

  // n^2 times the covariance, and n^4 times the product of the variances. Being down correlates as being up.
  int covariance() const { return n * both_down - x * y; }
  int variances() const { return (n * x - x * x) * (n * y - y * y); }
  double correlation() const {
    return variances() == 0 ? 0.0 : covariance() / std::sqrt(static_cast<double>(variances()));
  }
  double co_failure() const { return n == 0 ? 0.0 : static_cast<double>(both_failed) / n; }
  // max(c, f, 0). Who never failed together was never down together either: then neither is above 0.
  double score() const {
    return both_failed == 0 ? 0.0 : std::clamp(std::max(correlation(), co_failure()), 0.0, 1.0);
  }
  // Whether the score is at least the threshold, which is above 0; without a root, and without a branch that
  // nobody could foresee.
  bool reaches(double threshold) const {
    const double c = covariance();
    const bool correlated = (c > 0) & (c * c >= threshold * threshold * variances());
    return (n > 0) & (correlated | (both_failed >= threshold * n));
  }
};

Counts count(const Trace& a, const Trace& b) {
  const std::uint64_t rounds = common_rounds(a, b);
  return {ones(rounds), ones(a.down & rounds), ones(b.down & rounds), ones(a.down & b.down & rounds),
          ones(a.failed & b.failed & rounds)};
}

bool is_flipped(const Trace& a, const Trace& b, const CorrelationOptions& options) {
  const auto [first, second] = std::minmax(a.client, b.client);
  return options.stream->fork("flip", first, second).uniform() < options.noise;
}

// In order of latency the nearest clients and the one they are near to are consecutive, and the next one's do
// not begin earlier. Slides to those of `place`; of two equally near ones the lower is in.
class Window {
 public:
  Window(std::span<const Trace> traces, std::size_t neighbours)
      : traces_(traces), neighbours_(std::min(neighbours, std::max<std::size_t>(traces.size(), 1) - 1)) {}

  void slide_to(std::size_t place) {
    begin_ = std::max(begin_, place - std::min(place, neighbours_));
    begin_ = std::min(begin_, traces_.size() - neighbours_ - 1);
    while (begin_ < place && end() < traces_.size() && distance(place, end()) < distance(place, begin_))
      ++begin_;
  }
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return begin_ + neighbours_ + 1; }

 private:
  double distance(std::size_t a, std::size_t b) const {
    return std::abs(double{traces_[a].latency} - double{traces_[b].latency});
  }

  std::span<const Trace> traces_;
  std::size_t neighbours_;
  std::size_t begin_ = 0;
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
  // Whether it is known without a search that they are.
  bool joined(std::size_t a, std::size_t b) const { return parent_[a] == parent_[b]; }
  // Fills in clusters and the size of the largest. Parents come before their children.
  void name(Correlations& result) {
    std::vector<std::uint32_t> sizes(parent_.size());
    for (std::uint32_t i = 0; i < parent_.size(); ++i) {
      parent_[i] = parent_[parent_[i]];
      ++sizes[parent_[i]];
    }
    for (std::uint32_t& root : parent_) {
      result.largest = std::max<std::size_t>(result.largest, sizes[root]);
      if (sizes[root] == 1) root = Correlations::kAlone;
    }
    result.cluster = std::move(parent_);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace

double availability_correlation(const Trace& a, const Trace& b) { return count(a, b).correlation(); }

double co_failure(const Trace& a, const Trace& b) { return count(a, b).co_failure(); }

double pair_score(const Trace& a, const Trace& b, const CorrelationOptions& options) {
  const double score = count(a, b).score();
  return options.noise > 0 && is_flipped(a, b, options) ? 1 - score : score;
}

std::vector<std::size_t> neighbours_of(std::span<const Trace> traces, std::size_t place, std::size_t count) {
  std::vector<std::size_t> result;
  Window window(traces, count);
  window.slide_to(place);
  for (std::size_t j = window.begin(); j < window.end(); ++j)
    if (j != place) result.push_back(j);
  return result;
}

Correlations correlate(std::span<const Trace> traces, const CorrelationOptions& options, bool clusters) {
  FEDGE_CHECK(options.noise == 0 || options.stream, "noise needs a stream");
  FEDGE_CHECK(options.threshold > 0, "whoever has nothing in common is flagged with nobody");
  std::vector<std::uint8_t> downs(traces.size());
  for (std::size_t i = 0; i < traces.size(); ++i) downs[i] = static_cast<std::uint8_t>(ones(traces[i].down));
  // As count(), from what is known of the two where they have been known for equally long, as most have.
  const auto counts = [&](std::size_t i, std::size_t j) -> Counts {
    const Trace& a = traces[i];
    const Trace& b = traces[j];
    if (a.rounds != b.rounds) return count(a, b);
    return {a.rounds, downs[i], downs[j], ones(a.down & b.down), ones(a.failed & b.failed)};
  };
  const bool noisy = options.noise > 0;
  Correlations result;
  result.risk.assign(traces.size(), 0.0);
  Components components(clusters ? traces.size() : 0);
  std::vector<std::uint32_t> window_end(clusters ? traces.size() : 0);
  Window window(traces, options.neighbours);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    window.slide_to(i);
    if (clusters) window_end[i] = static_cast<std::uint32_t>(window.end());
    const bool there = (traces[i].down & 1) == 0;
    double safe = 1;
    for (std::size_t j = window.begin(); j < window.end(); ++j) {
      if (j == i) continue;
      if (there && traces[j].failed_now)
        safe *= 1 - (noisy ? pair_score(traces[i], traces[j], options) : counts(i, j).score());
      if (!clusters) continue;
      // Two that are neighbours of each other have been looked at already; above i the ends are still 0.
      const bool seen = window_end[j] > i;
      if (static_cast<int>(seen) | static_cast<int>(components.joined(i, j))) continue;
      if (noisy ? pair_score(traces[i], traces[j], options) >= options.threshold
                : counts(i, j).reaches(options.threshold))
        components.join(i, j);
    }
    result.risk[i] = 1 - safe;
  }
  if (clusters) components.name(result);
  return result;
}

}  // namespace fedge::aggregation
