#include "run/privacy/private_sum.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "aggregation/value_check.h"
#include "core/aligned_buffer.h"
#include "core/check.h"
#include "privacy/differential/noise.h"
#include "privacy/differential/tree_noise.h"

namespace fedge::run {
namespace {

constexpr std::size_t kSumPiece = std::size_t{1} << 16;
// Exceeds the single-precision rounding error when an update is scaled and its norm is computed.
constexpr double kMargin = 1 - 0x1p-20;
// Largest deviation of the noise on the count, in the count's finest units.
constexpr double kFinestCount = 0x1p19;
// Part of a noise key that is used for the count; the parts of a model are smaller.
constexpr std::uint64_t kCountPart = UINT64_MAX;

// A run of an update's packed values within one layer.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint32_t layer = 0;
};

std::vector<Stretch> stretches_of(const ParameterLayout& layout, const Coverage& coverage) {
  std::vector<Stretch> stretches;
  std::size_t position = 0;
  for (const Range& range : coverage.ranges())
    for (std::size_t parameter = range.begin; parameter < range.end;) {
      const TensorInfo& tensor = layout.tensor_at(parameter);
      const std::size_t end = std::min(range.end, tensor.offset + tensor.size);
      stretches.push_back({position, position + end - parameter, tensor.layer});
      position += end - parameter;
      parameter = end;
    }
  return stretches;
}

// Values scaled by one factor for each layer.
class LayersScaled final : public aggregation::UpdateValues {
 public:
  LayersScaled(std::shared_ptr<const aggregation::UpdateValues> values, std::vector<Stretch> stretches,
               std::vector<double> factors)
      : values_(std::move(values)), stretches_(std::move(stretches)), factors_(std::move(factors)) {}

  Result<void> read(std::size_t first, std::span<float> out) const override {
    if (const auto held = values_->in_memory(); !held.empty())
      std::copy_n(held.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    else
      FEDGE_TRY_VOID(values_->read(first, out));
    for (const Stretch& stretch : stretches_) {
      const std::size_t begin = std::max(stretch.begin, first);
      const std::size_t end = std::min(stretch.end, first + out.size());
      for (std::size_t i = begin; i < end; ++i)
        out[i - first] = static_cast<float>(static_cast<double>(out[i - first]) * factors_[stretch.layer]);
    }
    return {};
  }

 private:
  std::shared_ptr<const aggregation::UpdateValues> values_;
  std::vector<Stretch> stretches_;
  std::vector<double> factors_;  // by layer
};

// Squared norm of each layer.
Result<std::vector<double>> layer_squares(const aggregation::UpdateValues& values,
                                          std::span<const Stretch> stretches) {
  std::vector<double> squares;
  AlignedBuffer<float> buffer(kSumPiece);
  const auto held = values.in_memory();
  for (const Stretch& stretch : stretches) {
    if (squares.size() <= stretch.layer) squares.resize(stretch.layer + 1);
    for (std::size_t first = stretch.begin; first < stretch.end; first += kSumPiece) {
      const std::size_t size = std::min(kSumPiece, stretch.end - first);
      auto piece = std::span<const float>(buffer.span()).first(size);
      if (held.empty())
        FEDGE_TRY_VOID(values.read(first, buffer.span().first(size)));
      else
        piece = held.subspan(first, size);
      squares[stretch.layer] += aggregation::sum_of_squares(piece);
    }
  }
  return squares;
}

std::size_t layers_of(const ParameterLayout& layout) {
  std::set<std::uint32_t> layers;
  for (const TensorInfo& tensor : layout.tensors())
    if (tensor.trainable) layers.insert(tensor.layer);
  return layers.size();
}

}  // namespace

double clip_factor(double norm, double largest) {
  return norm * (2 - kMargin) <= largest ? 1 : largest / norm * kMargin;
}

bool clip_values(double largest, std::span<float> values) {
  const double norm = std::sqrt(aggregation::sum_of_squares(values));
  if (!std::isfinite(norm)) return false;
  const double factor = clip_factor(norm, largest);
  if (factor < 1)
    for (float& value : values) value = static_cast<float>(static_cast<double>(value) * factor);
  return true;
}

double noise_deviation(double multiplier, double norm_units, std::size_t numbers) {
  return multiplier * (norm_units + std::sqrt(static_cast<double>(numbers)) / 2);
}

PrivateSum::PrivateSum(const DifferentialPrivacySpec& spec, const aggregation::FixedPoint& format,
                       std::shared_ptr<const ParameterLayout> layout)
    : spec_(spec),
      layout_(std::move(layout)),
      trainable_(layout_->trainable()),
      layers_(layers_of(*layout_)),
      unit_(static_cast<double>(spec.weight) * format.unit()),
      norm_(spec.clipping_norm) {}

// With adaptive clipping, sums are in units of the norm: a small norm keeps the same relative precision.
Result<aggregation::Update> PrivateSum::clip(aggregation::Update update) {
  FEDGE_CHECK(update.values != nullptr || update.elsewhere, "what is clipped is here or elsewhere");
  if (spec_.clipping == Clipping::kPerLayer)
    return update.elsewhere ? Result<aggregation::Update>(std::move(update)) : clip_layers(std::move(update));
  const double factor = clip_factor(update.norm, norm_);
  count_ += factor == 1 ? 1 : -1;
  update.factor = factor * (spec_.clipping_norm / norm_);
  return update;
}

Result<aggregation::Update> PrivateSum::clip_layers(aggregation::Update update) const {
  std::vector<Stretch> stretches = stretches_of(*layout_, update.coverage);
  FEDGE_TRY(squares, layer_squares(*update.values, stretches));
  const double largest = norm_ / std::sqrt(static_cast<double>(layers_));
  std::vector<double> factors;
  for (const double square : squares) factors.push_back(clip_factor(std::sqrt(square), largest));
  update.values = std::make_shared<LayersScaled>(update.values, std::move(stretches), std::move(factors));
  return update;
}

Result<void> PrivateSum::release(aggregation::Aggregator& rule, const Noise& noise, Parallel& parallel) {
  const std::span<std::int64_t> sums = rule.sums();
  FEDGE_CHECK(sums.size() == layout_->size(), "a rule that takes sums");
  const bool tree = spec_.kind == DifferentialPrivacySpec::Kind::kTree;
  const double weight = spec_.expected_clients * static_cast<double>(spec_.weight);
  rule.divide_by(weight * (spec_.clipping_norm / norm_));
  if (spec_.kind == DifferentialPrivacySpec::Kind::kDistributed) return {};  // it came with the updates
  const double deviation =
      noise_deviation(spec_.update_noise, spec_.clipping_norm * unit_, trainable_.count());
  const auto variance = privacy::noise_variance(deviation);
  if (!variance)
    return Error{ErrorCode::kUnsupported,
                 "differential_privacy.noise_multiplier is too large for a model of so many parameters"};
  const Secret key = tree ? privacy::tree_key(*noise.root, noise.task.track)
                          : privacy::noise_key(*noise.root, {noise.task, *variance}, sums);
  std::uint64_t part = 0;
  for (const Range& range : trainable_.ranges()) {
    const auto numbers = sums.subspan(range.begin, range.size());
    if (tree)
      privacy::add_tree_noise(numbers, noise.task.round.value(), {key, *variance, part++}, parallel);
    else
      privacy::add_noise(numbers, {.key = key, .variance = *variance, .part = part++}, parallel);
  }
  if (spec_.clipping == Clipping::kAdaptive) adapt(key);
  return {};
}

// Andrew et al., algorithm 1. The noisy count gives the share of unclipped updates and its distance from the
// quantile; the norm moves towards the quantile geometrically.
void PrivateSum::adapt(const Secret& key) {
  double scale = 1;
  while (spec_.count_noise * scale * 2 <= kFinestCount) scale *= 2;
  const auto variance = privacy::noise_variance(spec_.count_noise * scale);
  FEDGE_CHECK(variance.has_value(), "noise on a count is as coarse as it needs to be");
  privacy::NoiseStream stream(key, kCountPart, 0);
  const double sum = static_cast<double>(count_) / 2 +
                     static_cast<double>(privacy::discrete_gaussian(*variance, stream)) / scale;
  const double share = std::clamp(sum / spec_.expected_clients + 0.5, 0.0, 1.0);
  next_ = norm_ * std::exp(-spec_.clipping_rate * (share - spec_.target_quantile));
}

void PrivateSum::close() {
  count_ = 0;
  if (next_)
    norm_ = std::clamp(*std::exchange(next_, {}), 1e-6 * spec_.clipping_norm, 1e5 * spec_.clipping_norm);
}

}  // namespace fedge::run
