#include "learn/evaluate.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/aligned_buffer.h"
#include "learn/kernels/kernels.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kBlock = 100;  // samples evaluated at a time

// Sums over one block; blocks are added up in order, so that threads cannot be seen in the result.
struct BlockSums {
  double loss = 0;
  std::vector<std::uint64_t> right;  // by class, as the rest
  std::vector<double> losses;
  std::vector<double> squares;  // of the losses
};

// What one thread needs for a block.
struct Space {
  explicit Space(const Model& model)
      : inputs(kBlock * model.input_size()),
        logits(kBlock * model.classes()),
        workspace(model.make_workspace(kBlock)) {}

  AlignedBuffer<float> inputs;
  AlignedBuffer<float> logits;
  std::unique_ptr<Workspace> workspace;
};

BlockSums evaluate_block(const Model& model, std::span<const float> parameters, const Dataset& data,
                         std::size_t first, Space& space) {
  const std::size_t count = std::min(kBlock, data.size() - first);
  const std::size_t classes = model.classes();
  const auto inputs = space.inputs.span().first(count * model.input_size());
  const auto logits = space.logits.span().first(count * classes);
  data.read_inputs(first, inputs);
  model.forward(parameters, {.inputs = inputs}, logits, *space.workspace);
  BlockSums sums{0, std::vector<std::uint64_t>(classes), std::vector<double>(classes),
                 std::vector<double>(classes)};
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = logits.subspan(i * classes, classes);
    const std::size_t label = data.labels[first + i];
    const auto largest = std::max_element(row.begin(), row.end());
    double total = 0;
    for (const float score : row)
      total += std::exp(static_cast<double>(score) - static_cast<double>(*largest));
    const double loss = std::log(total) - (static_cast<double>(row[label]) - static_cast<double>(*largest));
    sums.loss += loss;
    sums.losses[label] += loss;
    sums.squares[label] += loss * loss;
    if (static_cast<std::size_t>(largest - row.begin()) == label) ++sums.right[label];
  }
  return sums;
}

// The spread of losses over classes and within them, from sums over each class's samples.
void add_spread(std::span<const std::uint64_t> total, std::span<const double> losses,
                std::span<const double> squares, Evaluation& result) {
  double classes = 0;
  double means = 0;
  double squared_means = 0;
  double within = 0;
  for (std::size_t c = 0; c < total.size(); ++c) {
    if (total[c] < 2) continue;
    const auto n = static_cast<double>(total[c]);
    const double mean = losses[c] / n;
    classes += 1;
    means += mean;
    squared_means += mean * mean;
    within += std::max(0.0, squares[c] - n * mean * mean) / (n - 1);
  }
  if (classes == 0) return;
  means /= classes;
  result.between_class_variance = std::max(0.0, squared_means / classes - means * means);
  result.within_class_variance = within / classes;
}

}  // namespace

Evaluation evaluate(const Model& model, std::span<const float> parameters, const Dataset& data,
                    Parallel& parallel) {
  const std::size_t blocks = (data.size() + kBlock - 1) / kBlock;
  std::vector<BlockSums> sums(blocks);
  std::atomic<std::size_t> next{0};
  parallel.for_each(std::min(parallel.width(), blocks), [&](std::size_t) {
    Space space(model);
    for (std::size_t block = next++; block < blocks; block = next++)
      sums[block] = evaluate_block(model, parameters, data, block * kBlock, space);
  });
  Evaluation result;
  result.samples = data.size();
  std::vector<std::uint64_t> right(model.classes());
  std::vector<std::uint64_t> total(model.classes());
  for (const std::uint8_t label : data.labels) ++total[label];
  std::vector<double> losses(model.classes());
  std::vector<double> squares(model.classes());
  for (const BlockSums& block : sums) {
    result.loss += block.loss;
    for (std::size_t c = 0; c < right.size(); ++c) {
      right[c] += block.right[c];
      losses[c] += block.losses[c];
      squares[c] += block.squares[c];
    }
  }
  add_spread(total, losses, squares, result);
  std::uint64_t all_right = 0;
  for (std::size_t c = 0; c < right.size(); ++c) {
    all_right += right[c];
    result.per_class_accuracy.push_back(
        total[c] > 0 ? static_cast<double>(right[c]) / static_cast<double>(total[c]) : 0.0);
  }
  if (data.size() > 0) {
    result.loss /= static_cast<double>(data.size());
    result.accuracy = static_cast<double>(all_right) / static_cast<double>(data.size());
  }
  return result;
}

}  // namespace fedge::learn
