#include "aggregation/samplers/awpsp/selection.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <utility>

#include "aggregation/samplers/awpsp/correlation.h"
#include "aggregation/samplers/systematic.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

using Places = std::vector<std::uint32_t>;
constexpr std::uint32_t kAlone = Correlations::kAlone;

std::size_t half_of(std::size_t m) { return (m + 1) / 2; }

bool may_be_selected(const Unit& unit) { return unit.weight > 0 || unit.spare > 0; }

Places all_places(std::span<const Unit> units) {
  Places places;
  places.reserve(units.size());
  for (std::size_t i = 0; i < units.size(); ++i)
    if (may_be_selected(units[i])) places.push_back(static_cast<std::uint32_t>(i));
  return places;
}

// Those of the cluster first, the others behind it.
std::pair<Places, Places> split(std::span<const Unit> units, const Places& places, std::uint32_t cluster) {
  std::pair<Places, Places> parts;
  for (const std::uint32_t i : places)
    (units[i].cluster == cluster ? parts.first : parts.second).push_back(i);
  return parts;
}

// p in proportion to the weights, where none reaches 1, and that is the rule; false where one does.
template <class Weight>
bool fill_in_proportion(std::span<double> p, std::size_t m, const Weight& weight) {
  double sum = 0;
  double largest = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    sum += weight(i);
    largest = std::max(largest, weight(i));
  }
  if (!(static_cast<double>(m) * largest < sum)) return false;
  const double tau = static_cast<double>(m) / sum;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = weight(i) * tau;
  return true;
}

std::vector<double> water_filled(const std::vector<double>& weights, std::size_t m) {
  std::vector<double> p(weights.size());
  const bool filled = fill_in_proportion(p, m, [&](std::size_t i) { return weights[i]; });
  return filled ? p : capped_proportional(weights, m);
}

void fill(std::span<const Unit> units, const Places& places, std::size_t m, std::span<double> p) {
  std::vector<double> weights;
  weights.reserve(places.size());
  std::size_t first_tier = 0;
  for (const std::uint32_t i : places) {
    weights.push_back(units[i].weight);
    if (units[i].weight > 0) ++first_tier;
  }
  const std::vector<double> first = water_filled(weights, m);
  for (std::size_t k = 0; k < places.size(); ++k) p[places[k]] = first[k];
  if (first_tier >= m) return;
  for (std::size_t k = 0; k < places.size(); ++k) weights[k] = weights[k] > 0 ? 0.0 : units[places[k]].spare;
  const std::vector<double> second = water_filled(weights, m - first_tier);
  for (std::size_t k = 0; k < places.size(); ++k)
    if (units[places[k]].weight == 0) p[places[k]] = second[k];
}

// The cluster whose values add up to more than `limit`. No two do: each would be more than half.
std::uint32_t crowded(std::span<const Unit> units, std::span<const double> p, std::size_t limit) {
  std::uint32_t last = 0;
  for (const Unit& unit : units)
    if (unit.cluster != kAlone) last = std::max(last, unit.cluster);
  std::vector<double> sums(std::size_t{last} + 1);
  for (std::size_t i = 0; i < units.size(); ++i)
    if (units[i].cluster != kAlone) sums[units[i].cluster] += p[i];
  for (std::size_t c = 0; c < sums.size(); ++c)
    if (sums[c] > static_cast<double>(limit)) return static_cast<std::uint32_t>(c);
  return kAlone;
}

constexpr std::uint64_t kOne = std::uint64_t{1} << kInclusionBits;
constexpr std::uint32_t kNoBlock = 0xffffffff;

// Units of a sample, ready to be walked through: probabilities in units of 1 / kOne, 0 for those that are
// certain or impossible; and which clusters must stay together.
struct Walk {
  std::vector<std::uint64_t> p;
  std::vector<std::uint32_t> block;  // by place; empty if there are none
  std::size_t blocks = 0;

  std::uint32_t block_of(std::size_t i) const { return block.empty() ? kNoBlock : block[i]; }
};

// Clusters with more members than they may have in the sample.
void form_blocks(const SampleRequest& request, Walk& walk) {
  std::uint32_t last = 0;
  bool any = false;
  for (const Unit& unit : request.units) {
    if (unit.cluster == kAlone) continue;
    any = true;
    last = std::max(last, unit.cluster);
  }
  if (!any) return;
  std::vector<std::uint32_t> members(std::size_t{last} + 1);
  for (std::size_t i = 0; i < request.units.size(); ++i)
    if (request.units[i].cluster != kAlone && request.probabilities[i] > 0)
      ++members[request.units[i].cluster];
  std::vector<std::uint32_t> block(members.size(), kNoBlock);
  for (std::size_t c = 0; c < members.size(); ++c)
    if (members[c] > half_of(request.m)) block[c] = static_cast<std::uint32_t>(walk.blocks++);
  if (walk.blocks == 0) return;
  walk.block.assign(request.units.size(), kNoBlock);
  for (std::size_t i = 0; i < request.units.size(); ++i)
    if (request.units[i].cluster != kAlone) walk.block[i] = block[request.units[i].cluster];
}

// What is to be added to a sum of `units` rounded values so that it is whole; 0 if it was not meant to be.
std::int64_t correction(std::uint64_t sum, std::uint64_t units) {
  const std::uint64_t over = sum % kOne;
  const std::uint64_t tolerance = std::max<std::uint64_t>(units, 2);
  if (over <= tolerance) return -static_cast<std::int64_t>(over);
  return kOne - over <= tolerance ? static_cast<std::int64_t>(kOne - over) : 0;
}

// Rounding has moved sums that are integers a little; single units are corrected by one step until they are
// again: first within each block whose sum is whole, then among all others.
void make_sums_whole(Walk& walk) {
  struct Sum {
    std::uint64_t value = 0;
    std::uint64_t units = 0;
    std::int64_t correction = 0;
    bool whole = false;
  };
  std::vector<Sum> sums(walk.blocks + 1);
  Sum& others = sums.back();
  const auto add = [](Sum& sum, std::uint64_t p) {
    sum.value += p;
    sum.units += p > 0 ? 1 : 0;
  };
  for (std::size_t i = 0; i < walk.p.size(); ++i)
    add(walk.block_of(i) == kNoBlock ? others : sums[walk.block_of(i)], walk.p[i]);
  for (std::size_t b = 0; b < walk.blocks; ++b) {
    sums[b].correction = correction(sums[b].value, sums[b].units);
    sums[b].whole = sums[b].correction != 0 || sums[b].value % kOne == 0;
    if (sums[b].whole) continue;
    others.value += sums[b].value;
    others.units += sums[b].units;
  }
  others.correction = correction(others.value, others.units);
  std::int64_t left = 0;
  for (const Sum& sum : sums) left += std::abs(sum.correction);
  for (std::size_t i = 0; i < walk.p.size() && left > 0; ++i) {
    const std::uint32_t b = walk.block_of(i);
    Sum& sum = b != kNoBlock && sums[b].whole ? sums[b] : others;
    if (sum.correction < 0 && walk.p[i] > 1) {
      --walk.p[i];
      ++sum.correction;
      --left;
    } else if (sum.correction > 0 && walk.p[i] > 0 && walk.p[i] < kOne) {
      ++walk.p[i];
      --sum.correction;
      --left;
    }
  }
}

// A sample in random order without shuffling everybody: each unit is thrown into one of many buckets, and
// only the units of a bucket that a point falls into are shuffled. A block is a bucket of its own.
class Buckets {
 public:
  Buckets(const Walk& walk, std::size_t m, Rng& rng) : walk_(walk), rng_(rng) {
    const std::size_t open = std::bit_ceil(std::clamp<std::size_t>(16 * m, 16, 1U << 16));
    sums_.assign(open + walk.blocks, 0);
    bucket_.assign(walk.p.size(), 0);
    for (std::size_t i = 0; i < walk.p.size(); ++i) {
      if (walk.p[i] == 0) continue;
      const std::uint32_t block = walk.block_of(i);
      bucket_[i] =
          static_cast<std::uint32_t>(block == kNoBlock ? rng_.next_u32() & (open - 1) : open + block);
      sums_[bucket_[i]] += walk.p[i];
    }
  }

  // Appends the places that the points U, U + 1, ... fall on.
  void draw(std::vector<std::size_t>& drawn) {
    std::uint64_t next = rng_.below(kOne);
    std::vector<Places> hit = members_of_hit(next);
    std::uint64_t cumulative = 0;
    for (std::size_t b = 0; b < sums_.size(); ++b) {
      if (next >= cumulative + sums_[b]) {
        cumulative += sums_[b];
        continue;
      }
      Places& members = hit[hit_index_[b]];
      rng_.shuffle(std::span(members));
      for (const std::uint32_t i : members) {
        cumulative += walk_.p[i];
        if (next >= cumulative) continue;
        drawn.push_back(i);
        next += kOne;
      }
    }
  }

 private:
  std::vector<Places> members_of_hit(std::uint64_t next) {
    constexpr std::uint32_t kMissed = 0xffffffff;
    hit_index_.assign(sums_.size(), kMissed);
    std::uint32_t hits = 0;
    std::uint64_t cumulative = 0;
    for (std::size_t b = 0; b < sums_.size(); ++b) {
      cumulative += sums_[b];
      if (next >= cumulative) continue;
      hit_index_[b] = hits++;
      next += ((cumulative - 1 - next) / kOne + 1) * kOne;
    }
    std::vector<Places> members(hits);
    for (std::size_t i = 0; i < walk_.p.size(); ++i)
      if (walk_.p[i] > 0 && hit_index_[bucket_[i]] != kMissed)
        members[hit_index_[bucket_[i]]].push_back(static_cast<std::uint32_t>(i));
    return members;
  }

  const Walk& walk_;
  Rng& rng_;
  std::vector<std::uint64_t> sums_;
  std::vector<std::uint32_t> bucket_;     // by place
  std::vector<std::uint32_t> hit_index_;  // by bucket
};

template <class Better>
void take_best(Places& places, std::size_t count, const Better& better) {
  if (count >= places.size()) return;
  std::nth_element(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count), places.end(), better);
  places.resize(count);
}

using Counts = std::map<std::uint32_t, std::size_t>;  // by cluster

void count_in(std::span<const Unit> units, const Places& places, Counts& counts) {
  for (const std::uint32_t i : places)
    if (units[i].cluster != kAlone) ++counts[units[i].cluster];
}

struct Taking {
  Places places;
  std::size_t count = 0;  // to be taken of them
  std::size_t limit = 0;  // of one cluster, those `before` with it; 0: none
  Counts before;
};

// The best ones, as many of a cluster as the limit allows. It binds at most one cluster: two that exceed
// half of all would be more than all.
template <class Better>
Places take_guarded(std::span<const Unit> units, const Taking& taking, const Better& better) {
  Places chosen = taking.places;
  take_best(chosen, taking.count, better);
  if (taking.limit == 0) return chosen;
  Counts counts = taking.before;
  count_in(units, chosen, counts);
  const auto full = std::find_if(counts.begin(), counts.end(),
                                 [&](const auto& entry) { return entry.second > taking.limit; });
  if (full == counts.end()) return chosen;
  const auto before = taking.before.find(full->first);
  const std::size_t used = before == taking.before.end() ? 0 : before->second;
  auto [inside, outside] = split(units, taking.places, full->first);
  const std::size_t lacking = taking.count - std::min(taking.count, outside.size());
  take_best(inside, std::max(taking.limit - used, lacking), better);
  take_best(outside, taking.count - std::min(taking.count, inside.size()), better);
  inside.insert(inside.end(), outside.begin(), outside.end());
  return inside;
}

std::vector<std::size_t> sorted(const Places& places) {
  std::vector<std::size_t> result(places.begin(), places.end());
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

void LabelSet::add(std::size_t label) {
  if (label < kMaxLabels) bits[label / 64] |= std::uint64_t{1} << label % 64;
}

LabelSet& LabelSet::operator|=(const LabelSet& other) {
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] |= other.bits[i];
  return *this;
}

int LabelSet::count_without(const LabelSet& covered) const {
  int count = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) count += std::popcount(bits[i] & ~covered.bits[i]);
  return count;
}

std::vector<double> inclusion_probabilities(std::span<const Unit> units, std::size_t m, bool guard) {
  std::vector<double> p(units.size(), 0.0);
  if (!fill_in_proportion(std::span(p), m, [&](std::size_t i) { return units[i].weight; }))
    fill(units, all_places(units), m, p);
  if (!guard || units.empty()) return p;
  const std::size_t limit = half_of(m);
  const std::uint32_t cluster = crowded(units, p, limit);
  if (cluster == kAlone) return p;
  const auto [inside, outside] = split(units, all_places(units), cluster);
  const std::size_t share = std::max(limit, m - std::min(m, outside.size()));
  fill(units, inside, share, p);
  fill(units, outside, m - share, p);
  return p;
}

std::vector<std::size_t> guarded_sample(const SampleRequest& request, Rng& rng) {
  const std::size_t count = request.units.size();
  FEDGE_CHECK(request.probabilities.size() == count, "a probability for each unit");
  FEDGE_CHECK(count < std::size_t{1} << 24, "their probabilities add up without wrapping");
  std::vector<std::size_t> drawn;
  Walk walk;
  walk.p.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto p = static_cast<std::uint64_t>(request.probabilities[i] * static_cast<double>(kOne) + 0.5);
    if (p >= kOne)
      drawn.push_back(i);
    else
      walk.p[i] = p;
  }
  if (request.guard) form_blocks(request, walk);
  make_sums_whole(walk);
  Buckets(walk, request.m, rng).draw(drawn);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

std::vector<std::size_t> best_units(std::span<const Unit> units, std::size_t m, bool guard) {
  const auto better = [&](std::uint32_t a, std::uint32_t b) {
    if (units[a].weight != units[b].weight) return units[a].weight > units[b].weight;
    if (units[a].weight == 0 && units[a].spare != units[b].spare) return units[a].spare > units[b].spare;
    return a < b;
  };
  return sorted(take_guarded(units, {all_places(units), m, guard ? half_of(m) : 0, {}}, better));
}

std::vector<std::size_t> most_covering_units(const CoverageRequest& request) {
  const std::span<const Unit> units = request.units;
  const std::size_t limit = request.guard ? half_of(request.m) : 0;
  Places left = all_places(units);
  Places chosen;
  Counts counts;
  LabelSet covered = request.covered;
  const auto fresher = [&](std::uint32_t a, std::uint32_t b) {
    if ((units[a].weight > 0) != (units[b].weight > 0)) return units[a].weight > 0;
    if (request.freshness[a] != request.freshness[b]) return request.freshness[a] > request.freshness[b];
    return a > b;
  };
  while (chosen.size() < request.m && !request.labels.empty()) {
    auto best = left.end();
    int most = 0;
    for (auto at = left.begin(); at != left.end(); ++at) {
      const auto used = counts.find(units[*at].cluster);
      if (units[*at].weight == 0 || (limit > 0 && used != counts.end() && used->second >= limit)) continue;
      const int fresh = request.labels[*at].count_without(covered);
      if (fresh < most || fresh == 0) continue;
      if (fresh > most || fresher(*at, *best)) best = at;
      most = fresh;
    }
    if (best == left.end()) break;
    covered |= request.labels[*best];
    count_in(units, {*best}, counts);
    chosen.push_back(*best);
    left.erase(best);
  }
  const Places rest =
      take_guarded(units, {std::move(left), request.m - chosen.size(), limit, std::move(counts)}, fresher);
  chosen.insert(chosen.end(), rest.begin(), rest.end());
  return sorted(chosen);
}

}  // namespace fedge::aggregation
