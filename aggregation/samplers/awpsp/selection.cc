#include "aggregation/samplers/awpsp/selection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "aggregation/samplers/awpsp/correlation.h"
#include "aggregation/samplers/balanced.h"
#include "aggregation/samplers/systematic.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

using Places = std::vector<std::uint32_t>;
constexpr std::uint32_t kAlone = Correlations::kAlone;
constexpr std::size_t kBalanced = 32;  // most labels that a sample balances
// A balanced sample of m is drawn from a systematic sample of kThinned m + kThinnedMore units.
constexpr std::size_t kThinned = 4;
constexpr std::size_t kThinnedMore = 256;

std::size_t half_of(std::size_t m) { return (m + 1) / 2; }

bool may_be_selected(const Unit& unit) { return unit.weight > 0 || unit.spare > 0; }

Places all_places(std::span<const Unit> units) {
  Places places;
  places.reserve(units.size());
  for (std::size_t i = 0; i < units.size(); ++i)
    if (may_be_selected(units[i])) places.push_back(static_cast<std::uint32_t>(i));
  return places;
}

// Splits places into members of the cluster and the others.
std::pair<Places, Places> split(std::span<const Unit> units, const Places& places, std::uint32_t cluster) {
  std::pair<Places, Places> parts;
  for (const std::uint32_t i : places)
    (units[i].cluster == cluster ? parts.first : parts.second).push_back(i);
  return parts;
}

// Sets p in proportion to the weights and returns true if no p reaches 1; otherwise returns false.
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
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::min(1.0, weight(i) * tau);
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

// The cluster whose values add up to more than `limit`. There is at most one: its sum exceeds half of the
// total.
std::uint32_t crowded(std::span<const Unit> units, std::span<const double> p, double limit) {
  std::uint32_t last = 0;
  for (const Unit& unit : units)
    if (unit.cluster != kAlone) last = std::max(last, unit.cluster);
  std::vector<double> sums(std::size_t{last} + 1);
  for (std::size_t i = 0; i < units.size(); ++i)
    if (units[i].cluster != kAlone) sums[units[i].cluster] += p[i];
  for (std::size_t c = 0; c < sums.size(); ++c)
    if (sums[c] > limit) return static_cast<std::uint32_t>(c);
  return kAlone;
}

// Makes a block of each cluster that has more members than its limit in the sample.
SystematicBlocks blocks_of(const SampleRequest& request) {
  SystematicBlocks blocks;
  std::uint32_t last = 0;
  bool any = false;
  for (const Unit& unit : request.units) {
    if (unit.cluster == kAlone) continue;
    any = true;
    last = std::max(last, unit.cluster);
  }
  if (!any) return blocks;
  std::vector<std::uint32_t> members(std::size_t{last} + 1);
  for (std::size_t i = 0; i < request.units.size(); ++i)
    if (request.units[i].cluster != kAlone && request.probabilities[i] > 0)
      ++members[request.units[i].cluster];
  std::vector<std::uint32_t> block(members.size(), SystematicBlocks::kNone);
  for (std::size_t c = 0; c < members.size(); ++c)
    if (members[c] > half_of(request.m)) block[c] = static_cast<std::uint32_t>(blocks.count++);
  if (blocks.count == 0) return blocks;
  blocks.of.assign(request.units.size(), SystematicBlocks::kNone);
  for (std::size_t i = 0; i < request.units.size(); ++i)
    if (request.units[i].cluster != kAlone) blocks.of[i] = block[request.units[i].cluster];
  return blocks;
}

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
  std::size_t count = 0;  // number of places to choose
  std::size_t limit = 0;  // most members of one cluster, including `before`; 0: no limit
  Counts before;
};

// The best places, with at most `limit` members of one cluster. The limit binds at most one cluster: two
// clusters cannot both exceed half of the sample.
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

// A number for each label.
using ByLabel = std::array<double, LabelSet::kMaxLabels>;

template <class Visit>
void each_label(const LabelSet& labels, const Visit& visit) {
  for (std::size_t word = 0; word < labels.bits.size(); ++word)
    for (std::uint64_t left = labels.bits[word]; left != 0; left &= left - 1)
      visit(64 * word + static_cast<std::size_t>(std::countr_zero(left)));
}

// The most labels that a sample of this many units balances: an elimination costs their third power for each.
std::size_t most_balanced(std::size_t units) {
  constexpr double kOperations = 5e7;
  return std::min(kBalanced, static_cast<std::size_t>(std::cbrt(kOperations / static_cast<double>(units))));
}

// The held labels by their expected number of holders in the sample, the rarest first; at most `most`.
std::vector<std::size_t> rarest_labels(std::span<const LabelSet> labels, std::span<const double> p,
                                       std::size_t most) {
  ByLabel expected{};
  for (std::size_t i = 0; i < labels.size(); ++i)
    each_label(labels[i], [&](std::size_t label) { expected[label] += p[i]; });
  std::vector<std::size_t> order;
  for (std::size_t label = 0; label < expected.size(); ++label)
    if (expected[label] > 0) order.push_back(label);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return expected[a] < expected[b]; });
  order.resize(std::min(order.size(), most));
  return order;
}

// A block for each of these labels: the units of which it is the rarest label.
SystematicBlocks by_rarest(std::span<const LabelSet> labels, const std::vector<std::size_t>& rarest) {
  SystematicBlocks blocks{.of = std::vector<std::uint32_t>(labels.size(), SystematicBlocks::kNone),
                          .count = rarest.size()};
  std::array<std::uint32_t, LabelSet::kMaxLabels> block_of;
  block_of.fill(SystematicBlocks::kNone);
  for (std::size_t k = 0; k < rarest.size(); ++k) block_of[rarest[k]] = static_cast<std::uint32_t>(k);
  for (std::size_t i = 0; i < labels.size(); ++i)
    each_label(labels[i], [&](std::size_t label) { blocks.of[i] = std::min(blocks.of[i], block_of[label]); });
  return blocks;
}

// The cluster whose probabilities add up to the limit, which is then an integer; kAlone if there is none.
std::uint32_t full_cluster(std::span<const Unit> units, std::span<const double> p, std::size_t limit) {
  constexpr double kRounding = 1e-9;
  return crowded(units, p, static_cast<double>(limit) * (1 - kRounding));
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

bool LabelSet::holds(std::size_t label) const {
  return label < kMaxLabels && (bits[label / 64] >> label % 64 & 1) != 0;
}

LabelSet& LabelSet::operator|=(const LabelSet& other) {
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] |= other.bits[i];
  return *this;
}

LabelSet LabelSet::operator&(const LabelSet& other) const {
  return {{bits[0] & other.bits[0], bits[1] & other.bits[1]}};
}

LabelSet LabelSet::without(const LabelSet& other) const {
  return {{bits[0] & ~other.bits[0], bits[1] & ~other.bits[1]}};
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
  const std::uint32_t cluster = crowded(units, p, static_cast<double>(limit));
  if (cluster == kAlone) return p;
  const auto [inside, outside] = split(units, all_places(units), cluster);
  const std::size_t share = std::max(limit, m - std::min(m, outside.size()));
  fill(units, inside, share, p);
  fill(units, outside, m - share, p);
  return p;
}

std::vector<std::size_t> guarded_sample(const SampleRequest& request, Rng& rng) {
  FEDGE_CHECK(request.probabilities.size() == request.units.size(), "a probability for each unit");
  return systematic_sample(request.probabilities, rng,
                           request.guard ? blocks_of(request) : SystematicBlocks{});
}

std::vector<double> label_factors(const LabelRequest& request) {
  ByLabel weight{};
  for (std::size_t i = 0; i < request.labels.size(); ++i)
    each_label(request.labels[i].without(request.covered),
               [&](std::size_t label) { weight[label] += request.fresh[i]; });
  bool missing_any = false;
  double sum = 0;
  double held = 0;
  for (std::size_t label = 0; label < weight.size(); ++label) {
    missing_any = missing_any || weight[label] > 0;
    if (!request.contested.holds(label)) weight[label] = 0;
    sum += weight[label];
    held += weight[label] > 0 ? 1 : 0;
  }
  if (!missing_any || request.typical == 0) return {};
  ByLabel gain{};
  for (std::size_t label = 0; label < gain.size(); ++label)
    gain[label] = weight[label] > 0 ? sum / held / weight[label] : 1;
  std::vector<double> factors(request.labels.size());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const LabelSet missing = request.labels[i].without(request.covered);
    const int count = missing.count();
    if (request.labels[i].count() == 0) factors[i] = request.typical;
    if (count == 0) continue;
    double gains = 0;
    each_label(missing, [&](std::size_t label) { gains += gain[label]; });
    factors[i] = std::min(gains * std::min(count, request.typical) / count, kMaxLabelFactor);
  }
  return factors;
}

std::vector<std::size_t> labelled_sample(const SampleRequest& request, std::span<const LabelSet> labels,
                                         Rng& rng) {
  FEDGE_CHECK(labels.size() == request.units.size(), "labels for each unit");
  const std::span<const double> p = request.probabilities;
  const std::size_t thinned = kThinned * request.m + kThinnedMore;
  const std::vector<std::size_t> rarest = rarest_labels(labels, p, most_balanced(thinned));
  const std::uint32_t cluster = request.guard ? full_cluster(request.units, p, half_of(request.m)) : kAlone;
  std::vector<std::size_t> kept;
  std::vector<double> left;
  const SystematicBlocks blocks = by_rarest(labels, rarest);
  const auto thin_out = [&](const std::vector<double>& part) {
    const std::vector<double> first = water_filled(part, thinned);
    for (const std::size_t i : systematic_sample(first, rng, blocks)) {
      kept.push_back(i);
      left.push_back(std::min(1.0, p[i] / first[i]));
    }
  };
  // Thins out the members of a full cluster and the others separately, because both sums are integers.
  std::vector<double> others(p.begin(), p.end());
  if (cluster != kAlone) {
    std::vector<double> members(p.size(), 0.0);
    for (std::size_t i = 0; i < p.size(); ++i)
      if (request.units[i].cluster == cluster) members[i] = std::exchange(others[i], 0.0);
    thin_out(members);
  }
  thin_out(others);
  const std::size_t guarded = cluster == kAlone ? 0 : 1;
  const auto holds = [&](std::size_t place, std::size_t group) {
    if (group < guarded) return request.units[kept[place]].cluster == cluster;
    return labels[kept[place]].holds(rarest[group - guarded]);
  };
  std::vector<std::size_t> chosen;
  for (const std::size_t place : balanced_sample({left, rarest.size() + guarded, holds}, rng))
    chosen.push_back(kept[place]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
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
      if (limit > 0 && used != counts.end() && used->second >= limit) continue;
      const int fresh = std::min(request.labels[*at].count_without(covered), request.most_new);
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
