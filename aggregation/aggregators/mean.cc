#include "aggregation/aggregators/mean.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "aggregation/accumulator.h"
#include "core/aligned_buffer.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

// Values of a stored update held in memory at a time.
constexpr std::size_t kMeanPiece = std::size_t{1} << 16;
// Weight of every update if all count the same. It exceeds 1 so that the mean is rounded more finely than its
// contributions.
constexpr std::uint64_t kUniformWeight = 1024;

enum class Weighting { kSamples, kUniform, kNormalised };

class Mean final : public Aggregator {
 public:
  Mean(const AggregatorContext& context, Weighting weighting, double damping)
      : context_(context),
        weighting_(weighting),
        damping_(damping),
        uniform_weight_(uniform_weight(context.fixed_point, context.max_updates)),
        room_(static_cast<double>(context.fixed_point.max_total_weight().value() /
                                  std::max<std::size_t>(context.max_updates, 1))),
        accumulator_(context.layout, context.fixed_point) {}

  Result<void> add(std::span<const Update> updates, Parallel& parallel) override {
    std::vector<UpdateView> in_memory;
    for (const Update& update : updates) {
      UpdateView view = view_of(update);
      if (!update.values) {
        FEDGE_TRY_VOID(accumulator_.open(view));
        continue;
      }
      view.values = update.values->in_memory();
      if (!view.values.empty())
        in_memory.push_back(view);
      else
        FEDGE_TRY_VOID(stream(view, *update.values));
    }
    if (!in_memory.empty()) FEDGE_TRY_VOID(accumulator_.fold(in_memory, parallel));
    for (const Update& update : updates) count_steps(update);
    return {};
  }

  Result<void> add_sum(const ExactSum& sum) override {
    FEDGE_CHECK(weighting_ != Weighting::kNormalised, "whose steps are whose is not in a sum");
    return accumulator_.add(sum);
  }

  std::span<std::int64_t> sums() override { return accumulator_.sums(); }
  void divide_by(double weight) override {
    FEDGE_CHECK(damping_ == 0, "damping needs the weight of the round's updates");
    fixed_weight_ = weight;
  }

  Result<void> prepare(Parallel&) override {
    if (accumulator_.updates() == 0 && fixed_weight_ == 0)
      return Error{ErrorCode::kUnavailable, "no update has arrived"};
    return {};
  }

  Result<void> read(std::size_t first, std::span<double> out, Parallel&) override {
    if (fixed_weight_ > 0)
      accumulator_.mean_over(fixed_weight_, first, out);
    else
      accumulator_.mean(first, out, damping_);
    if (weighting_ != Weighting::kNormalised) return {};
    const double tau = weighted_steps_ / static_cast<double>(accumulator_.total_weight().value());
    for (double& value : out) value *= tau;
    return {};
  }

  Coverage covered() const override {
    return fixed_weight_ > 0 ? context_.layout->trainable() : accumulator_.covered();
  }

  void clear() override {
    accumulator_.clear();
    weighted_steps_ = 0;
  }

 private:
  double steps_of(const Update& update) const {
    return effective_steps(update.steps, context_.local_momentum, context_.local_proximal);
  }

  UpdateView view_of(const Update& update) const {
    UpdateView view{
        .weight = update.weight, .coverage = &update.coverage, .values = {}, .factor = update.factor};
    if (weighting_ == Weighting::kUniform) view.weight = SampleCount(uniform_weight_);
    // Limits the factor: each update may use at most room_ of the sums, minus a margin for rounding.
    const double most = room_ / static_cast<double>(view.weight.value()) * (1 - 0x1p-30);
    view.factor = std::min(view.factor, std::max(1.0, most));
    if (weighting_ == Weighting::kNormalised) view.factor /= steps_of(update);
    return view;
  }

  // Folds a stored update. After a read error the sums are incomplete, and the run must end.
  Result<void> stream(UpdateView view, const UpdateValues& values) {
    FEDGE_TRY_VOID(accumulator_.open(view));
    AlignedBuffer<float> buffer(kMeanPiece);
    const std::size_t count = view.coverage->count();
    for (std::size_t first = 0; first < count; first += kMeanPiece) {
      const auto piece = buffer.span().first(std::min(kMeanPiece, count - first));
      FEDGE_TRY_VOID(values.read(first, piece));
      view.values = piece;
      accumulator_.add(view, first);
    }
    return {};
  }

  // Rounds to multiples of 2^-20: such a sum of doubles does not depend on its order, up to 2^53.
  void count_steps(const Update& update) {
    if (weighting_ != Weighting::kNormalised) return;
    weighted_steps_ +=
        std::nearbyint(static_cast<double>(update.weight.value()) * steps_of(update) * 0x1p20) * 0x1p-20;
  }

  AggregatorContext context_;
  Weighting weighting_;
  double damping_;
  std::uint64_t uniform_weight_;
  double room_;  // bound on samples * factor of one update
  Accumulator accumulator_;
  double weighted_steps_ = 0;  // sum of weight * effective steps
  double fixed_weight_ = 0;    // fixed divisor; 0: the weight of the updates that arrived
};

AggregatorPart part(Weighting weighting, double damping = 0) {
  return {.make = [=](const AggregatorContext& context) -> std::unique_ptr<Aggregator> {
            return std::make_unique<Mean>(context, weighting, damping);
          },
          .damping = damping};
}

double read_damping(config::Reader& section) {
  return section.number(
      "damping", 0, {0, 1},
      "Reduces the step of parameters that few clients train. The mean of a parameter is multiplied by "
      "(weight of the updates that train it / weight of all updates of the round)^damping. 0: no reduction, "
      "the published rule; other values are an option of Fedge.");
}

}  // namespace

std::uint64_t uniform_weight(const FixedPoint& format, std::size_t updates) {
  return std::clamp<std::uint64_t>(format.max_total_weight().value() / std::max<std::size_t>(updates, 1), 1,
                                   kUniformWeight);
}

double effective_steps(std::uint64_t steps, double momentum, double alpha) {
  const auto tau = static_cast<double>(steps);
  if (momentum > 0) return (tau - momentum * (1 - std::pow(momentum, tau)) / (1 - momentum)) / (1 - momentum);
  if (alpha > 0) return (1 - std::pow(1 - alpha, tau)) / alpha;
  return tau;
}

AggregatorPart read_mean(config::Reader& section) { return part(Weighting::kSamples, read_damping(section)); }
AggregatorPart read_uniform_mean(config::Reader& section) {
  return part(Weighting::kUniform, read_damping(section));
}
AggregatorPart read_fednova(config::Reader&) { return part(Weighting::kNormalised); }

}  // namespace fedge::aggregation
