#include "aggregation/samplers/systematic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << kInclusionBits;
constexpr std::size_t kMaxUnits = (std::size_t{1} << 24) - 1;  // their probabilities add up without overflow
using Places = std::vector<std::uint32_t>;

// A sample's units: probabilities in units of 1 / kOne, set to 0 for certain and impossible units.
struct Walk {
  std::vector<std::uint64_t> p;
  const SystematicBlocks& blocks;
};

// Returns what makes a sum of `units` rounded values a whole number; 0 if the exact sum is not whole.
std::int64_t correction(std::uint64_t sum, std::uint64_t units) {
  const std::uint64_t over = sum % kOne;
  const std::uint64_t tolerance = std::max<std::uint64_t>(units, 2);
  if (over <= tolerance) return -static_cast<std::int64_t>(over);
  return kOne - over <= tolerance ? static_cast<std::int64_t>(kOne - over) : 0;
}

// Rounding shifts sums that should be integers. Corrects units by one step each until the sums are whole:
// first within each block whose sum is whole, then among all other units.
void make_sums_whole(Walk& walk) {
  struct Sum {
    std::uint64_t value = 0;
    std::uint64_t units = 0;
    std::int64_t correction = 0;
    bool whole = false;
  };
  std::vector<Sum> sums(walk.blocks.count + 1);
  Sum& others = sums.back();
  const auto add = [](Sum& sum, std::uint64_t p) {
    sum.value += p;
    sum.units += p > 0 ? 1 : 0;
  };
  for (std::size_t i = 0; i < walk.p.size(); ++i)
    add(walk.blocks.block_of(i) == SystematicBlocks::kNone ? others : sums[walk.blocks.block_of(i)],
        walk.p[i]);
  for (std::size_t b = 0; b < walk.blocks.count; ++b) {
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
    const std::uint32_t b = walk.blocks.block_of(i);
    Sum& sum = b != SystematicBlocks::kNone && sums[b].whole ? sums[b] : others;
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

// Samples in random order without a full shuffle: each unit gets a random bucket, and only buckets that
// contain a sample point are shuffled. Each block is one bucket.
class Buckets {
 public:
  Buckets(const Walk& walk, std::size_t m, Rng& rng) : walk_(walk), rng_(rng) {
    const std::size_t open = std::bit_ceil(std::clamp<std::size_t>(16 * m, 16, 1U << 16));
    sums_.assign(open + walk.blocks.count, 0);
    bucket_.assign(walk.p.size(), 0);
    for (std::size_t i = 0; i < walk.p.size(); ++i) {
      if (walk.p[i] == 0) continue;
      const std::uint32_t block = walk.blocks.block_of(i);
      bucket_[i] = static_cast<std::uint32_t>(block == SystematicBlocks::kNone ? rng_.next_u32() & (open - 1)
                                                                               : open + block);
      sums_[bucket_[i]] += walk.p[i];
    }
  }

  // Appends the places hit by the points U, U + 1, ...
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

}  // namespace

std::vector<double> capped_proportional(std::span<const double> weights, std::size_t m) {
  double all = 0;
  std::vector<std::size_t> order;  // of the positive weights
  for (std::size_t i = 0; i < weights.size(); ++i) {
    FEDGE_CHECK(weights[i] >= 0, "a weight of sampling is at least 0");
    all += weights[i];
    if (weights[i] > 0) order.push_back(i);
  }
  FEDGE_CHECK(std::isfinite(all), "weights of sampling have a finite sum");
  std::vector<double> p(weights.size(), 0.0);
  if (m == 0) return p;
  if (order.size() <= m) {
    for (const std::size_t i : order) p[i] = 1;
    return p;
  }
  // At most the m largest reach 1. The order of each sum depends only on the weights.
  const auto larger = [&](std::size_t a, std::size_t b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  };
  const auto top = order.begin() + static_cast<std::ptrdiff_t>(m);
  std::nth_element(order.begin(), top - 1, order.end(), larger);
  std::sort(order.begin(), top, larger);
  std::vector<double> sum(m + 1);  // sum[k]: all weights but the k largest
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (larger(order[m - 1], i)) sum[m] += weights[i];
  for (std::size_t k = m; k > 0; --k) sum[k - 1] = sum[k] + weights[order[k - 1]];
  std::size_t certain = 0;
  while (certain + 1 < m && static_cast<double>(m - certain) * weights[order[certain]] >= sum[certain])
    ++certain;
  const double left = static_cast<double>(m - certain);
  for (const std::size_t i : order) p[i] = std::min(1.0, left * weights[i] / sum[certain]);
  for (std::size_t k = 0; k < certain; ++k) p[order[k]] = 1;
  return p;
}

std::vector<std::size_t> systematic_sample(std::span<const double> probabilities, Rng& rng,
                                           const SystematicBlocks& blocks) {
  FEDGE_CHECK(probabilities.size() <= kMaxUnits, "a systematic sample is of fewer than 2^24 units");
  std::vector<std::size_t> drawn;
  Walk walk{std::vector<std::uint64_t>(probabilities.size()), blocks};
  double expected = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    FEDGE_CHECK(probabilities[i] >= 0 && probabilities[i] <= 1, "a probability is from 0 to 1");
    expected += probabilities[i];
    const auto p = static_cast<std::uint64_t>(probabilities[i] * static_cast<double>(kOne) + 0.5);
    if (p >= kOne)
      drawn.push_back(i);
    else
      walk.p[i] = p;
  }
  make_sums_whole(walk);
  Buckets(walk, static_cast<std::size_t>(std::llround(expected)), rng).draw(drawn);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace fedge::aggregation
