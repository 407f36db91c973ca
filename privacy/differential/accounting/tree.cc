#include "privacy/differential/accounting/tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace fedge::privacy {
namespace {

constexpr std::uint32_t kMostTreeSteps = 1U << 20;
constexpr std::uint32_t kMostTimes = 1024;
constexpr std::uint64_t kMostSpread = 200'000;  // max_times times min_separation: takes some seconds

// A way to take part in some steps of a block. lead, trail: free leaves before the first and after the last
// participation, counted at most up to the minimum separation. squares: sum over the subtrees of the block.
struct Pattern {
  std::uint32_t lead;
  std::uint32_t trail;
  std::uint64_t squares;
};
// The patterns that no other beats in all three values. Sorted by falling squares, then by rising lead, so
// that trail falls.
using Front = std::vector<Pattern>;

struct TreeBlock {
  std::uint32_t leaves = 0;
  std::vector<Front> fronts;  // [k - 1]: patterns with k participations
};

Front prune(std::vector<Pattern> patterns) {
  std::ranges::sort(patterns, [](const Pattern& a, const Pattern& b) {
    if (a.squares != b.squares) return a.squares > b.squares;
    return a.lead != b.lead ? a.lead > b.lead : a.trail > b.trail;
  });
  Front front;
  std::map<std::uint32_t, std::uint32_t> best;  // lead to trail of the kept patterns; trail falls
  for (const Pattern& pattern : patterns) {
    const auto above = best.lower_bound(pattern.lead);
    if (above != best.end() && above->second >= pattern.trail) continue;
    auto at = best.insert_or_assign(pattern.lead, pattern.trail).first;
    while (at != best.begin() && std::prev(at)->second <= pattern.trail) best.erase(std::prev(at));
    front.push_back(pattern);
  }
  std::ranges::sort(front, [](const Pattern& a, const Pattern& b) {
    return a.squares != b.squares ? a.squares > b.squares : a.lead < b.lead;
  });
  return front;
}

// Joins `left` with at most one pattern of each group of equal squares: of those with enough lead the one
// with the least lead, because it has the most trail.
void join_pattern(const Pattern& left, const Front& right, std::uint32_t separation,
                  std::vector<Pattern>& joined) {
  const std::uint32_t needed = separation - left.trail;
  for (auto group = right.begin(); group != right.end();) {
    const auto end = std::partition_point(
        group, right.end(), [&](const Pattern& pattern) { return pattern.squares == group->squares; });
    const auto found =
        std::partition_point(group, end, [&](const Pattern& pattern) { return pattern.lead < needed; });
    if (found != end) joined.push_back({left.lead, found->trail, left.squares + found->squares});
    group = end;
  }
}

// Joins two neighbouring blocks. `tree`: they are the halves of one subtree, whose own square is added.
TreeBlock join(const TreeBlock& left, const TreeBlock& right, const Participation& participation, bool tree) {
  const std::uint32_t separation = participation.min_separation;
  TreeBlock whole{left.leaves + right.leaves, {}};
  const std::size_t most =
      std::min<std::size_t>(participation.max_times, left.fronts.size() + right.fronts.size());
  for (std::size_t k = 1; k <= most; ++k) {
    std::vector<Pattern> joined;
    if (k <= left.fronts.size())
      for (Pattern pattern : left.fronts[k - 1]) {
        pattern.trail = std::min(separation, pattern.trail + right.leaves);
        joined.push_back(pattern);
      }
    if (k <= right.fronts.size())
      for (Pattern pattern : right.fronts[k - 1]) {
        pattern.lead = std::min(separation, pattern.lead + left.leaves);
        joined.push_back(pattern);
      }
    for (std::size_t j = 1; j < k; ++j)
      if (j <= left.fronts.size() && k - j <= right.fronts.size())
        for (const Pattern& pattern : left.fronts[j - 1])
          join_pattern(pattern, right.fronts[k - j - 1], separation, joined);
    if (joined.empty()) break;
    if (tree)
      for (Pattern& pattern : joined) pattern.squares += k * k;
    whole.fronts.push_back(prune(std::move(joined)));
  }
  return whole;
}

}  // namespace

Result<double> tree_squared_sensitivity(const Participation& participation) {
  const std::uint32_t steps = participation.steps;
  if (steps == 0 || steps > kMostTreeSteps)
    return invalid("number of rounds: must be from 1 to " + std::to_string(kMostTreeSteps) + ", not " +
                   std::to_string(steps));
  if (participation.max_times == 0) return invalid("max_participations: must be at least 1");
  // Any separation beyond the number of steps allows only one participation.
  Participation effective = participation;
  effective.min_separation = std::min(participation.min_separation, steps);
  effective.max_times = std::min(participation.max_times, (steps - 1) / (effective.min_separation + 1) + 1);
  if (effective.max_times > kMostTimes)
    return invalid("max_participations: a client may take part " + std::to_string(effective.max_times) +
                   " times, but at most " + std::to_string(kMostTimes) +
                   " are supported; lower max_participations or raise min_separation");
  if (std::uint64_t{effective.max_times} * effective.min_separation > kMostSpread)
    return invalid("min_separation: max_participations times min_separation must be at most " +
                   std::to_string(kMostSpread));
  std::vector<TreeBlock> trees = {{1, {{Pattern{0, 0, 1}}}}};  // [d]: 2^d leaves
  while (trees.back().leaves <= steps / 2) trees.push_back(join(trees.back(), trees.back(), effective, true));
  TreeBlock all;
  for (std::size_t d = trees.size(); d-- > 0;)
    if ((steps >> d) % 2 == 1) all = join(all, trees[d], effective, false);
  std::uint64_t most = 0;
  for (const Front& front : all.fronts) most = std::max(most, front.front().squares);
  return static_cast<double>(most);
}

}  // namespace fedge::privacy
