#include "aggregation/planners/rank_prefix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

constexpr std::int64_t kMaxRank = 1024;

RankOptions read_ranks(config::Reader& section) {
  RankOptions options;
  const std::vector<std::int64_t> ranks = section.integers(
      "ranks", std::vector<std::int64_t>{4, 8, 16, 32}, {1, kMaxRank},
      "Ranks of the levels, in ascending order. The highest must be at most model.adapter.rank.");
  options.ranks.assign(ranks.begin(), ranks.end());
  if (options.ranks.empty() || options.ranks.size() > kMaxLevels ||
      !std::ranges::is_sorted(options.ranks, std::less_equal<>()))
    section.fail("ranks", "lists " + std::to_string(options.ranks.size()) + " ranks, expected 1 to " +
                              std::to_string(kMaxLevels) + " ranks in ascending order");
  Levels& levels = options.levels;
  const std::size_t highest = options.ranks.empty() ? 1 : options.ranks.back();
  levels.shares.clear();
  for (const std::size_t rank : options.ranks)
    levels.shares.push_back(static_cast<double>(rank) / static_cast<double>(highest));
  const std::vector<double> even(options.ranks.size(),
                                 1.0 / static_cast<double>(std::max<std::size_t>(options.ranks.size(), 1)));
  read_population(section, "ranks", even, levels);
  return options;
}

PlannerPart rank_part(const RankOptions& options) {
  return {
      .make = [options](const PlannerContext& context) { return RankPrefixPlanner::make(options, context); },
      .ranks = options.ranks};
}

}  // namespace

Result<std::unique_ptr<Planner>> RankPrefixPlanner::make(const RankOptions& options,
                                                         const PlannerContext& context) {
  if (context.adapters == nullptr)
    return invalid("it divides the ranks of adapters, but the model has no adapters; set model.adapter.rank");
  if (options.ranks.back() > context.adapters->rank)
    return invalid("rank " + std::to_string(options.ranks.back()) +
                   " is above model.adapter.rank, which is " + std::to_string(context.adapters->rank));
  auto planner = std::unique_ptr<RankPrefixPlanner>(new RankPrefixPlanner());
  planner->options_ = options;
  planner->adapters_ = *context.adapters;
  planner->parameters_ = context.layout->size();
  planner->population_ = Population(options.levels, context.clients, context.rng);
  planner->limit_.assign(context.clients, std::numeric_limits<std::uint16_t>::max());
  return std::unique_ptr<Planner>(std::move(planner));
}

std::size_t RankPrefixPlanner::rank(ClientId client) const {
  const std::size_t own = options_.ranks[population_.level(client)];
  return std::min<std::size_t>(own, limit_[client.value()]);
}

Coverage RankPrefixPlanner::coverage(std::size_t rank) const {
  if (!options_.b_alone) return Coverage::of({adapters_.prefix(rank)});
  std::vector<Range> ranges;
  for (std::size_t j = 0; j < rank; ++j) {
    const std::size_t row = adapters_.offset + j * adapters_.row;
    ranges.push_back({row + adapters_.b_begin, row + adapters_.row});
  }
  return Coverage::of(std::move(ranges));
}

Coverage RankPrefixPlanner::plan(const PlanRequest& request) { return coverage(rank(request.client)); }

double RankPrefixPlanner::share(ClientId client) const {
  return static_cast<double>(coverage(rank(client)).count()) / static_cast<double>(parameters_);
}

void RankPrefixPlanner::admit(ClientId client, double capability) { population_.admit(client, capability); }

void RankPrefixPlanner::limit(ClientId client, double share) {
  FEDGE_CHECK(client.value() < limit_.size() && share > 0 && share <= 1, "a client of the run and a share");
  const double rank = std::floor(share * static_cast<double>(adapters_.rank) + 1e-9);
  std::uint16_t& limit = limit_[client.value()];  // a limit never rises again
  limit = std::min(limit, static_cast<std::uint16_t>(std::max(1.0, rank)));
}

PlannerPart read_rank_prefix(config::Reader& section) { return rank_part(read_ranks(section)); }

PlannerPart read_rank_prefix_b(config::Reader& section) {
  RankOptions options = read_ranks(section);
  options.b_alone = true;
  return rank_part(options);
}

}  // namespace fedge::aggregation
