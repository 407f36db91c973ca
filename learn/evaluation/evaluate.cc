#include "learn/evaluation/evaluate.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/aligned_buffer.h"
#include "core/config/own_part.h"
#include "learn/kernels/kernels.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kBlock = 100;  // most samples evaluated together, unless they are texts
constexpr std::size_t kBlockActivations = 1 << 24;
constexpr std::size_t kBlockPoints = 1 << 13;
constexpr std::size_t kBlockTokens = 512;  // target number of tokens evaluated together

// Sums over the samples of one class.
struct ClassSums {
  std::uint64_t predictions = 0;
  std::uint64_t right = 0;
  double losses = 0;  // sum over the predictions
  std::uint64_t samples = 0;
  double means = 0;    // sum over the samples of their mean losses
  double squares = 0;  // sum of the squares of these mean losses
  std::uint64_t bytes = 0;

  ClassSums& operator+=(const ClassSums& more) {
    predictions += more.predictions;
    right += more.right;
    losses += more.losses;
    samples += more.samples;
    means += more.means;
    squares += more.squares;
    bytes += more.bytes;
    return *this;
  }
};

// Sums of one block, stored only for the classes in it. Blocks are added up in order, so that the result does
// not depend on the threads.
class BlockSums {
 public:
  ClassSums& of(std::size_t label) {
    auto found = std::ranges::find(sums_, label, &std::pair<std::size_t, ClassSums>::first);
    if (found == sums_.end()) found = sums_.insert(sums_.end(), {label, {}});
    return found->second;
  }
  void add_to(std::vector<ClassSums>& all) const {
    for (const auto& [label, sums] : sums_) all[label] += sums;
  }
  void write(std::vector<std::uint64_t>& out) const {
    out.push_back(sums_.size());
    for (const auto& [label, c] : sums_)
      out.insert(out.end(),
                 {label, c.predictions, c.right, std::bit_cast<std::uint64_t>(c.losses), c.samples,
                  std::bit_cast<std::uint64_t>(c.means), std::bit_cast<std::uint64_t>(c.squares), c.bytes});
  }
  // Reads what write() wrote from the front of `in`; false if it is not there.
  bool read(std::span<const std::uint64_t>& in, std::size_t classes) {
    constexpr std::size_t kNumbers = 8;
    if (in.empty() || in[0] > (in.size() - 1) / kNumbers) return false;
    const std::uint64_t count = in[0];
    for (in = in.subspan(1); sums_.size() < count; in = in.subspan(kNumbers)) {
      if (in[0] >= classes) return false;
      sums_.push_back({in[0],
                       {.predictions = in[1],
                        .right = in[2],
                        .losses = std::bit_cast<double>(in[3]),
                        .samples = in[4],
                        .means = std::bit_cast<double>(in[5]),
                        .squares = std::bit_cast<double>(in[6]),
                        .bytes = in[7]}});
    }
    return true;
  }

 private:
  std::vector<std::pair<std::size_t, ClassSums>> sums_;
};

std::size_t block_size(const Model& model) {
  const std::size_t outputs = model.outputs_per_sample();
  if (!model.input().tokens) {
    const std::size_t most = std::min(kBlock, kBlockActivations / (model.activations_per_sample() + 1));
    return std::clamp<std::size_t>(kBlockPoints / outputs, 1, std::max<std::size_t>(most, 1));
  }
  return std::max<std::size_t>(1, kBlockTokens / outputs);
}

// Scratch memory of one thread.
struct Space {
  Space(const Model& model, const Dataset& data, std::size_t ranks)
      : samples(block_size(model)),
        batch(data.shape.size(), data.shape.tokens, samples.size()),
        logits(samples.size() * model.outputs_per_sample() * model.classes()),
        workspace(model.make_workspace(samples.size())),
        sums(sums_shape(model)) {
    workspace->ranks = ranks;
  }

  std::vector<std::uint32_t> samples;
  BatchBuffer batch;
  AlignedBuffer<float> logits;
  std::unique_ptr<Workspace> workspace;
  EvaluationSums sums;
  const Normalisation* normalisation = nullptr;  // null: none
};

// Counts the predictions of sample `i` of a batch whose samples have labels or values.
ClassSums add_values(const Batch& batch, std::span<const float> scores, std::size_t i, EvaluationSums& sums) {
  const std::size_t width = sums.shape().outputs;
  const auto own = scores.subspan(i * width, width);
  const auto values = batch.values.subspan(i * width, width);
  const auto prediction =
      batch.kind == TargetKind::kLabels ? sums.add_labels(own, values) : sums.add_values(own, values);
  return {.predictions = width, .right = prediction.right, .losses = prediction.loss};
}

// The same where each sample, token or point has a class.
ClassSums add_classes(const Batch& batch, std::span<const float> scores, std::size_t i, std::size_t outputs,
                      const TextInputs& text, EvaluationSums& sums) {
  const std::size_t width = sums.shape().outputs;
  ClassSums sample;
  for (std::size_t o = i * outputs; o < (i + 1) * outputs; ++o) {
    const std::size_t target = batch.targets.empty() ? batch.labels[o] : batch.targets[o];
    if (!batch.targets.empty() && target == kNoToken) continue;
    const std::size_t bytes = batch.targets.empty() ? 0 : text.bytes[target];
    const auto prediction = sums.add(scores.subspan(o * width, width), target, bytes);
    ++sample.predictions;
    sample.losses += prediction.loss;
    sample.right += prediction.right;
    sample.bytes += bytes;
  }
  if (sums.shape().steps) {
    const auto labels = batch.labels.subspan(i * outputs, outputs);
    sums.add_events(scores.subspan(i * outputs * width, outputs * width),
                    std::vector<std::uint32_t>(labels.begin(), labels.end()));
  }
  return sample;
}

// At most block_size() samples.
BlockSums evaluate_block(const Model& model, std::span<const float> parameters, const Dataset& data,
                         std::span<const std::uint32_t> samples, Space& space) {
  const std::size_t outputs = model.outputs_per_sample();
  const Batch batch = space.batch.read(data, samples, /*flip=*/false, space.normalisation);
  const auto logits = space.logits.span().first(samples.size() * outputs * model.classes());
  model.forward(parameters, batch, logits, *space.workspace);
  BlockSums sums;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ClassSums sample = batch.values.empty() ? add_classes(batch, logits, i, outputs, data.text, space.sums)
                                            : add_values(batch, logits, i, space.sums);
    sample.samples = 1;
    sample.means = sample.losses / static_cast<double>(sample.predictions);
    sample.squares = sample.means * sample.means;
    sums.of(data.labels[samples[i]]) += sample;
  }
  return sums;
}

// Sets the variances of the samples' losses between classes and within them.
void add_spread(std::span<const ClassSums> sums, Evaluation& result) {
  double classes = 0;
  double means = 0;
  double squared_means = 0;
  double within = 0;
  for (const ClassSums& c : sums) {
    if (c.samples < 2) continue;
    const auto n = static_cast<double>(c.samples);
    const double mean = c.means / n;
    classes += 1;
    means += mean;
    squared_means += mean * mean;
    within += std::max(0.0, c.squares - n * mean * mean) / (n - 1);
  }
  if (classes == 0) return;
  means /= classes;
  result.between_class_variance = std::max(0.0, squared_means / classes - means * means);
  result.within_class_variance = within / classes;
}

double bits_per_byte(const ClassSums& sums) {
  return sums.losses / std::numbers::ln2 / static_cast<double>(sums.bytes);
}

void add_bits(std::span<const ClassSums> sums, const ClassSums& all, Evaluation& result) {
  if (all.bytes == 0) return;
  result.bits_per_byte = bits_per_byte(all);
  double groups = 0;
  for (const ClassSums& group : sums) {
    if (group.bytes == 0) continue;
    groups += 1;
    result.group_bits_per_byte += bits_per_byte(group);
  }
  result.group_bits_per_byte /= groups;
}

// What was counted in each block, and the sums of these blocks.
struct Blocks {
  Blocks(std::size_t count, const EvaluationSums::Shape& shape) : by_block(count), sums(shape) {}
  std::vector<BlockSums> by_block;
  EvaluationSums sums;
};

std::size_t block_count(const Model& model, const Dataset& data) {
  const std::size_t size = block_size(model);
  return (data.size() + size - 1) / size;
}

// Evaluates every share.parts-th block.
Result<Blocks> evaluate_blocks(const Model& model, std::span<const float> parameters, const Dataset& data,
                               Parallel& parallel, std::size_t ranks, const EvaluationShare& share) {
  const std::size_t size = block_size(model);
  Blocks blocks(block_count(model, data), sums_shape(model));
  const std::size_t count = blocks.by_block.size();
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> samples_done{0};
  const std::size_t workers = std::min(parallel.width(), count);
  std::vector<EvaluationSums> by_worker(workers, EvaluationSums(sums_shape(model)));
  FEDGE_TRY_VOID(config::failure_as_error([&]() -> Result<void> {
    parallel.for_each(workers, [&](std::size_t worker) {
      Space space(model, data, ranks);
      const auto take = [&] { return share.part + share.parts * next++; };
      for (std::size_t block = take(); block < count; block = take()) {
        const auto samples = std::span(space.samples).first(std::min(size, data.size() - block * size));
        std::iota(samples.begin(), samples.end(), static_cast<std::uint32_t>(block * size));
        blocks.by_block[block] = evaluate_block(model, parameters, data, samples, space);
        samples_done += samples.size();
      }
      by_worker[worker] = std::move(space.sums);
    });
    return {};
  }));
  for (const EvaluationSums& part : by_worker) blocks.sums += part;
  blocks.sums.end_client(samples_done);
  return blocks;
}

Evaluation summarise(const Blocks& blocks, const Dataset& data) {
  std::vector<ClassSums> sums(data.classes);
  ClassSums all;
  for (const BlockSums& block : blocks.by_block) block.add_to(sums);
  Evaluation result;
  result.samples = data.size();
  result.sums = blocks.sums;
  for (const ClassSums& c : sums) {
    all += c;
    result.per_class_accuracy.push_back(c.predictions > 0 ? static_cast<double>(c.right) /
                                                                static_cast<double>(c.predictions)
                                                          : std::numeric_limits<double>::quiet_NaN());
  }
  add_spread(sums, result);
  add_bits(sums, all, result);
  if (all.predictions > 0) {
    result.loss = all.losses / static_cast<double>(all.predictions);
    result.accuracy = static_cast<double>(all.right) / static_cast<double>(all.predictions);
  }
  result.metrics = result.sums.metrics(target_scale(data));
  if (data.targets.shape.kind == TargetKind::kClass) return result;
  result.per_class_accuracy = result.metrics.per_class_accuracy;
  if (data.targets.shape.kind == TargetKind::kValues) result.accuracy = result.metrics.accuracy;
  return result;
}

}  // namespace

EvaluationSums::Shape sums_shape(const Model& model) {
  const bool points = model.target().kind == TargetKind::kPoints;
  const InputShape& input = model.input();
  return {.text = input.tokens,
          .outputs = model.classes(),
          .tokens = model.outputs_per_sample(),
          .kind = model.target().kind,
          .steps = points && input.channels == 1 && model.target().points == input.height};
}

Evaluation evaluation_of(EvaluationSums sums, std::span<const float> scale) {
  Evaluation result;
  result.samples = sums.samples();
  result.metrics = sums.metrics(scale);
  result.loss = result.metrics.loss;
  result.accuracy = result.metrics.accuracy;
  result.between_class_variance = result.within_class_variance = std::numeric_limits<double>::quiet_NaN();
  result.per_class_accuracy = result.metrics.per_class_accuracy;
  result.bits_per_byte = result.metrics.bits_per_byte.value_or(0);
  result.sums = std::move(sums);
  return result;
}

Result<Evaluation> evaluate(const Model& model, std::span<const float> parameters, const Dataset& data,
                            Parallel& parallel, std::size_t ranks) {
  FEDGE_TRY(blocks, evaluate_blocks(model, parameters, data, parallel, ranks, {}));
  return summarise(blocks, data);
}

Result<std::string> evaluate_share(const Model& model, std::span<const float> parameters, const Dataset& data,
                                   Parallel& parallel, const EvaluationShare& share) {
  FEDGE_TRY(blocks, evaluate_blocks(model, parameters, data, parallel, SIZE_MAX, share));
  std::vector<std::uint64_t> numbers;
  for (std::size_t block = share.part; block < blocks.by_block.size(); block += share.parts)
    blocks.by_block[block].write(numbers);
  for (const std::int64_t value : blocks.sums.values()) numbers.push_back(static_cast<std::uint64_t>(value));
  std::string bytes(numbers.size() * sizeof numbers.front(), 0);
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

Result<Evaluation> evaluation_of_shares(const Model& model, const Dataset& data,
                                        std::span<const std::string> shares) {
  const Error damaged{ErrorCode::kCorrupt, "a share of an evaluation is not one of this model and data set"};
  const EvaluationSums::Shape shape = sums_shape(model);
  Blocks blocks(block_count(model, data), shape);
  for (std::size_t part = 0; part < shares.size(); ++part) {
    std::vector<std::uint64_t> numbers(shares[part].size() / sizeof(std::uint64_t));
    std::memcpy(numbers.data(), shares[part].data(), numbers.size() * sizeof(std::uint64_t));
    std::span<const std::uint64_t> rest = numbers;
    for (std::size_t block = part; block < blocks.by_block.size(); block += shares.size())
      if (!blocks.by_block[block].read(rest, data.classes)) return damaged;
    std::vector<std::int64_t> values;
    for (const std::uint64_t number : rest) values.push_back(static_cast<std::int64_t>(number));
    if (values.size() != shape.size()) return damaged;
    FEDGE_TRY(sums, EvaluationSums::from(shape, values));
    blocks.sums += sums;
  }
  blocks.sums.count_as_one_client();
  return summarise(blocks, data);
}

Result<EvaluationSums> evaluate_samples(const Model& model, std::span<const float> parameters,
                                        const Dataset& data, std::span<const std::uint32_t> samples,
                                        const SampleEvaluation& how) {
  Space space(model, data, SIZE_MAX);
  space.normalisation = how.normalisation;
  space.workspace->base = how.base;
  FEDGE_TRY_VOID(config::failure_as_error([&]() -> Result<void> {
    for (std::size_t done = 0; done < samples.size(); done += block_size(model)) {
      if (how.stop.stop_requested()) return Error{ErrorCode::kStale, "the evaluation was cancelled"};
      (void)evaluate_block(model, parameters, data,
                           samples.subspan(done, std::min(block_size(model), samples.size() - done)), space);
    }
    return {};
  }));
  space.sums.end_client(samples.size());
  return std::move(space.sums);
}

}  // namespace fedge::learn
