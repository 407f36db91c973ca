#include "aggregation/planners/block.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "aggregation/planners/layers.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

const std::vector<std::string> kBlockSchedules = {"cyclic", "permutation", "uniform", "importance"};
const std::vector<std::string> kBlockEnds = {"apart", "together", "frozen"};

// The least importance of a block, so that each can be drawn.
constexpr double kNoMovement = 1e-30;

}  // namespace

Result<std::vector<Coverage>> blocks_of(const ParameterLayout& layout, BlockEnds ends) {
  std::map<std::uint32_t, std::vector<Range>> layers;
  for (const TensorInfo& tensor : layout.tensors()) {
    if (tensor.order == TensorOrder::kRankMajor)
      return invalid(
          "it trains blocks of layers, but the model has adapters; remove model.adapter, or use \"fedit\"");
    if (tensor.trainable) layers[tensor.layer].push_back({tensor.offset, tensor.offset + tensor.size});
  }
  std::vector<Coverage> blocks;
  for (auto& [layer, ranges] : layers) blocks.push_back(Coverage::of(std::move(ranges)));
  if (ends != BlockEnds::kApart && blocks.size() < 3)
    return invalid(
        "the model has " + std::to_string(blocks.size()) +
        " layers with parameters, none of which lies between the first and the last; set ends = \"apart\"");
  if (ends != BlockEnds::kApart) {
    const Coverage last = std::move(blocks.back());
    blocks.pop_back();
    if (ends == BlockEnds::kTogether)
      blocks.front() = blocks.front().unite(last);
    else
      blocks.erase(blocks.begin());
  }
  if (blocks.empty()) return invalid("the model has no parameters to train");
  for (const Coverage& block : blocks) FEDGE_TRY_VOID(check_ranges(block.ranges().size()));
  return blocks;
}

Result<std::unique_ptr<Planner>> BlockPlanner::make(const BlockOptions& options,
                                                    const PlannerContext& context) {
  auto planner = std::unique_ptr<BlockPlanner>(new BlockPlanner());
  FEDGE_TRY(blocks, blocks_of(*context.layout, options.ends));
  std::size_t trained = 0;
  for (const Coverage& block : blocks) trained += block.count();
  planner->share_ = static_cast<double>(trained) /
                    (static_cast<double>(blocks.size()) * static_cast<double>(context.layout->size()));
  planner->blocks_ = std::move(blocks);
  planner->schedule_ = options.schedule;
  planner->rng_ = context.rng.fork("blocks");
  return std::unique_ptr<Planner>(std::move(planner));
}

std::vector<std::uint32_t> BlockPlanner::permutation(std::uint64_t epoch) const {
  std::vector<std::uint32_t> order(blocks_.size());
  std::iota(order.begin(), order.end(), 0U);
  rng_.fork("permutation", epoch).shuffle(std::span(order));
  return order;
}

// Two epochs may meet at the same block: the later one then begins with its second block.
std::size_t BlockPlanner::permuted(std::uint64_t position) const {
  const std::size_t count = blocks_.size();
  // Two blocks without repetition alternate.
  if (count <= 2) return (position + permutation(0).front()) % count;
  const std::uint64_t epoch = position / count;
  const std::size_t place = position % count;
  const std::vector<std::uint32_t> order = permutation(epoch);
  const bool meets = place < 2 && epoch > 0 && permutation(epoch - 1).back() == order.front();
  return order[meets ? 1 - place : place];
}

void BlockPlanner::observe(RoundNumber round, double norm) {
  if (schedule_ != BlockSchedule::kImportance || round.value() == 0) return;
  if (norms_.size() < round.value()) norms_.resize(round.value());
  norms_[round.value() - 1] = norm;
}

std::size_t BlockPlanner::by_importance(Rng rng, std::optional<std::size_t> former) const {
  std::vector<std::optional<double>> last(blocks_.size());
  for (std::size_t round = 0; round < std::min(chosen_.size(), norms_.size()); ++round)
    if (norms_[round]) last[chosen_[round]] = norms_[round];
  std::vector<bool> trained(blocks_.size());
  for (const std::uint32_t block : chosen_) trained[block] = true;
  double total = 0;
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (!trained[block]) return block;
    if (block != former) total += std::max(last[block].value_or(0), kNoMovement);
  }
  double left = rng.uniform() * total;
  std::size_t chosen = 0;
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (block == former) continue;
    chosen = block;
    left -= std::max(last[block].value_or(0), kNoMovement);
    if (left < 0) break;
  }
  return chosen;
}

void BlockPlanner::choose() {
  const std::size_t count = blocks_.size();
  const std::optional<std::size_t> former =
      chosen_.empty() || count == 1 ? std::nullopt : std::optional<std::size_t>(chosen_.back());
  Rng rng = rng_.fork("block", chosen_.size() + 1);
  std::size_t block = 0;
  if (schedule_ == BlockSchedule::kImportance)
    block = by_importance(rng, former);
  else
    block = former ? (*former + 1 + rng.below(count - 1)) % count : rng.below(count);
  chosen_.push_back(static_cast<std::uint32_t>(block));
}

std::size_t BlockPlanner::block_in(RoundNumber round) {
  FEDGE_CHECK(round.value() > 0, "rounds count from 1");
  const std::uint64_t position = round.value() - 1;
  if (schedule_ == BlockSchedule::kCyclic) return position % blocks_.size();
  if (schedule_ == BlockSchedule::kPermutation) return permuted(position);
  while (chosen_.size() <= position) choose();
  return chosen_[position];
}

PlannerPart read_block(config::Reader& section) {
  BlockOptions options;
  options.schedule = static_cast<BlockSchedule>(section.choice(
      "schedule", kBlockSchedules, static_cast<std::size_t>(options.schedule),
      "In which order the blocks are trained. No block follows itself.\ncyclic: in the order of the "
      "layers.\npermutation: all of them in a random order, then in another one.\nuniform: a random "
      "block.\nimportance: a random block, the more likely the larger the updates were that trained it "
      "last."));
  options.ends = static_cast<BlockEnds>(section.choice(
      "ends", kBlockEnds, static_cast<std::size_t>(options.ends),
      "Whether the first and the last layer of the model, in language models the embedding and the output "
      "layer, are trained.\napart: each is a block.\ntogether: both are one block.\nfrozen: neither is "
      "trained."));
  return {.make = [options](const PlannerContext& context) { return BlockPlanner::make(options, context); },
          .reads_norms = options.schedule == BlockSchedule::kImportance};
}

}  // namespace fedge::aggregation
