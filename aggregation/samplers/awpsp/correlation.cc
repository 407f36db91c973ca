#include "aggregation/samplers/awpsp/correlation.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "aggregation/samplers/awpsp/pair_kernels.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

// The correlation of two bits over n rounds: x rounds with the first, y with the second, `both` with both.
double correlation_of(int n, int x, int y, int both) {
  // n^2 times the covariance, and n^4 times the product of the variances.
  const int covariance = n * both - x * y;
  const int variances = (n * x - x * x) * (n * y - y * y);
  return variances == 0 ? 0.0 : covariance / std::sqrt(static_cast<double>(variances));
}

// The rounds in which both clients were known.
struct Common {
  int count = 0;
  std::uint64_t mask = 0;  // a bit for each
};

Common common_rounds(const Trace& a, const Trace& b) {
  const int n = std::min(a.rounds, b.rounds);
  return {n, n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1};
}

double correlation_of(const Common& rounds, std::uint64_t a, std::uint64_t b) {
  return correlation_of(rounds.count, std::popcount(a & rounds.mask), std::popcount(b & rounds.mask),
                        std::popcount(a & b & rounds.mask));
}

bool is_flipped(const Trace& a, const Trace& b, const CorrelationOptions& options) {
  const auto [first, second] = std::minmax(a.client, b.client);
  return options.stream->fork("flip", first, second).uniform() < options.noise;
}

// Union-find forest over places: the root is the smallest place of its tree and holds the tree's size.
class Forest {
 public:
  explicit Forest(std::size_t places) : parent_(places), size_(places) {}

  void add(std::size_t place) {
    parent_[place] = static_cast<std::uint32_t>(place);
    size_[place] = 1;
  }

  // The smaller root stays a root, so that cluster names do not depend on the order of the pairs.
  void join(std::size_t a, std::size_t b) {
    if (parent_[a] == parent_[b]) return;
    const std::uint32_t x = root_of(static_cast<std::uint32_t>(a));
    const std::uint32_t y = root_of(static_cast<std::uint32_t>(b));
    if (x == y) return;
    parent_[std::max(x, y)] = std::min(x, y);
    size_[std::min(x, y)] += size_[std::max(x, y)];
    largest_ = std::max(largest_, size_[std::min(x, y)]);
  }

  // Sets the clusters and the size of the largest. Parents come before their children.
  void name_clusters(Correlations& result) && {
    result.largest = parent_.empty() ? 0 : largest_;
    result.cluster.resize(parent_.size());
    for (std::size_t place = 0; place < parent_.size(); ++place) {
      const std::uint32_t root = parent_[place] = parent_[parent_[place]];
      result.cluster[place] = size_[root] == 1 ? Correlations::kAlone : root;
    }
  }

 private:
  std::uint32_t root_of(std::uint32_t place) {
    while (parent_[place] != place) place = parent_[place] = parent_[parent_[place]];
    return place;
  }

  std::vector<std::uint32_t> parent_;
  std::vector<std::uint32_t> size_;  // of the tree, at its root
  std::uint32_t largest_ = 1;
};

// Walks over all places in blocks that fit the caches. Each block is loaded with a margin of neighbours
// before and after it.
class PairWalk {
 public:
  PairWalk(const Neighbourhood& neighbourhood, const CorrelationOptions& options)
      : neighbourhood_(neighbourhood),
        options_(options),
        margin_(neighbourhood.neighbours),
        places_(neighbourhood.before.size()),
        traces_(std::min(places_, kBlock + 2 * margin_)),
        scores_(traces_.size() * margin_),
        safe_(traces_.size()),
        downs_(traces_.size()),
        failures_(traces_.size()) {
    for (auto* part : {&down_, &failed_, &rounds_, &failed_now_, &before_, &links_})
      part->resize(traces_.size());
  }

  template <class Visit>
  void each_block(const TraceSource& source, const Visit& visit) {
    for (std::size_t begin = 0; begin < places_; begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, places_);
      loaded_ = begin - std::min(begin, margin_);
      count_ = std::min(end + margin_, places_) - loaded_;
      source(loaded_, std::span(traces_).first(count_));
      compare();
      visit(begin, end);
    }
  }

  // 1 - product of (1 - rho_ij) over the failed neighbours j of a client.
  double risk(std::size_t place) const {
    return (down_[place - loaded_] & 1) != 0 ? 0.0 : 1 - safe_[place - loaded_];
  }

  // Joins each place of the block with the earlier places that it is linked to.
  void join_links(std::size_t begin, std::size_t end, Forest& forest) const {
    std::uint64_t of_last_one = 0;
    for (std::size_t i = begin; i < end; ++i) {
      forest.add(i);
      const std::uint64_t links = links_[i - loaded_];
      // Links shared with the previous place are already joined through that place.
      const std::uint64_t joined = (links & 1) != 0 ? of_last_one << 1 : 0;
      for (std::uint64_t left = links & ~joined; left != 0; left &= left - 1)
        forest.join(i, i - 1 - static_cast<std::size_t>(std::countr_zero(left)));
      of_last_one = links;
    }
  }

 private:
  static constexpr std::size_t kBlock = 1024;

  void compare() {
    bool alike = options_.noise == 0;  // the kernel can compare all pairs
    for (std::size_t k = 0; k < count_; ++k) {
      down_[k] = traces_[k].down;
      failed_[k] = traces_[k].failed;
      rounds_[k] = traces_[k].rounds;
      failed_now_[k] = traces_[k].failed_now ? 1 : 0;
      before_[k] = neighbourhood_.before[loaded_ + k];
      alike = alike && rounds_[k] == rounds_[0];
    }
    const TraceArrays arrays{count_,         down_.data(),       failed_.data(),
                             rounds_.data(), failed_now_.data(), before_.data()};
    const PairScores result{margin_,      scores_.data(), options_.threshold, links_.data(),
                            safe_.data(), downs_.data(),  failures_.data()};
    kernels_.score(arrays, result);
    if (!alike) compare_the_unlike();
    kernels_.judge(arrays, result);
  }

  void compare_the_unlike() {
    for (std::size_t d = 1; d <= margin_; ++d)
      for (std::size_t k = d; k < count_; ++k)
        if (options_.noise > 0 || rounds_[k] != rounds_[k - d])
          scores_[(d - 1) * count_ + k] = pair_score(traces_[k], traces_[k - d], options_);
  }

  const Neighbourhood& neighbourhood_;
  const CorrelationOptions& options_;
  PairKernels kernels_ = best_pair_kernels();
  std::size_t margin_;
  std::size_t places_;
  std::size_t loaded_ = 0;  // the place of the first trace
  std::size_t count_ = 0;   // traces
  std::vector<Trace> traces_;
  std::vector<std::uint64_t> down_;
  std::vector<std::uint64_t> failed_;
  std::vector<std::uint64_t> rounds_;
  std::vector<std::uint64_t> failed_now_;
  std::vector<std::uint64_t> before_;
  std::vector<std::uint64_t> links_;
  std::vector<double> scores_;
  std::vector<double> safe_;
  std::vector<double> downs_;
  std::vector<double> failures_;
};

}  // namespace

// Down-times correlate like up-times.
double availability_correlation(const Trace& a, const Trace& b) {
  return correlation_of(common_rounds(a, b), a.down, b.down);
}

double co_failure(const Trace& a, const Trace& b) {
  return correlation_of(common_rounds(a, b), a.failed, b.failed);
}

double pair_score(const Trace& a, const Trace& b, const CorrelationOptions& options) {
  const double score = std::clamp(std::max(availability_correlation(a, b), co_failure(a, b)), 0.0, 1.0);
  return options.noise > 0 && is_flipped(a, b, options) ? 1 - score : score;
}

// Computes where each client's window of neighbours begins. The window starts `count` places before the
// client and moves one place on for each first member that is farther away than the place after the window.
// Those members come first, so they can be counted without a branch.
Neighbourhood find_neighbours(std::span<const float> latencies, std::size_t count) {
  FEDGE_CHECK(count <= kMaxNeighbours, "a link is a bit");
  Neighbourhood found;
  if (latencies.empty()) return found;
  found.neighbours = std::min(count, latencies.size() - 1);
  found.before.resize(latencies.size());
  const std::size_t width = found.neighbours + 1;
  const std::size_t end = latencies.size() - width;  // where the last window begins
  for (std::size_t place = 0; place < latencies.size(); ++place) {
    const double here{latencies[place]};
    const auto is_farther = [&](std::size_t k) {
      return here - double{latencies[k]} > double{latencies[k + width]} - here;
    };
    const std::size_t first = place - std::min(place, found.neighbours);
    std::size_t before = place - first;
    for (std::size_t k = first; k < std::min(place, end); ++k) before -= is_farther(k) ? std::size_t{1} : 0;
    found.before[place] = static_cast<std::uint8_t>(before);
  }
  return found;
}

Correlations correlate(const Neighbourhood& neighbourhood, const TraceSource& source,
                       const CorrelationOptions& options, bool clusters) {
  FEDGE_CHECK(options.noise == 0 || options.stream, "noise needs a stream");
  FEDGE_CHECK(options.threshold > 0, "whoever has nothing in common is flagged with nobody");
  const std::size_t places = neighbourhood.before.size();
  Correlations result;
  result.risk.resize(places);
  Forest forest(clusters ? places : 0);
  PairWalk walk(neighbourhood, options);
  walk.each_block(source, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) result.risk[i] = static_cast<float>(walk.risk(i));
    if (clusters) walk.join_links(begin, end, forest);
  });
  if (clusters) std::move(forest).name_clusters(result);
  return result;
}

}  // namespace fedge::aggregation
