#include "privacy/differential/accounting/loss/pld.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "privacy/differential/accounting/loss/composed_loss.h"
#include "privacy/differential/accounting/loss/pld_plan.h"

namespace fedge::privacy {
namespace {

constexpr std::size_t kMostGridPoints = std::size_t{1} << 20;
constexpr std::size_t kRoughPoints = std::size_t{1} << 14;
constexpr int kMostAttempts = 12;        // attempts to find a rough answer
constexpr double kLogDeltaError = 5e-8;  // largest effect of the grid's spacing on log delta
constexpr double kTailShare = 1e-9;  // largest fraction of delta that infinite losses of all steps may cause

// Absolute error of delta, over all steps, that is allowed while nothing is known about delta.
constexpr double kLeastTail = 1e-40;
// A smaller log delta does not fit into a double; this value is reported instead.
constexpr double kLeastLogDelta = -690;

// The spectra of a composition for one plan.
class PlannedLosses {
 public:
  PlannedLosses(const Composition& composition, const Plan& plan) : plan_(plan) {
    for (const RepeatedStep& each : composition.steps)
      spectra_.push_back(make_spectrum(each.step, composition.direction, composition.tail, plan));
  }
  // Composes the planned steps with these counts, which may be lower than planned.
  ComposedLoss compose(std::span<const RepeatedStep> steps) const {
    std::vector<ComposedLoss::Factor> factors;
    for (std::size_t i = 0; i < steps.size(); ++i) factors.push_back({spectra_[i], steps[i].count});
    return {factors, plan_};
  }

 private:
  Plan plan_;
  std::vector<StepSpectrum> spectra_;
};

ComposedLoss compose(const Composition& composition, const Plan& plan) {
  return PlannedLosses(composition, plan).compose(composition.steps);
}

// An upper bound of epsilon that is also close to it. A window planned for Chernoff's bound may be far off;
// it is therefore moved until the result settles.
double rough_epsilon(const Composition& composition, double delta) {
  double rough = std::min(composition.most, chernoff_epsilon(composition, delta * (1 - 2 * kTailShare)));
  for (int i = 0; i < kMostAttempts; ++i) {
    const Plan plan = make_plan(composition, {rough, std::log(delta)}, {1e-4, kRoughPoints});
    const double better = compose(composition, plan).epsilon(delta);
    if (!(better < rough)) break;
    const bool close = better > 0.99 * rough;
    rough = better;
    if (close) break;
  }
  return rough;
}

// An upper bound of epsilon in one direction. Computes a rough one first, and a precise one only if it
// exceeds `floor`.
double epsilon_in(std::span<const RepeatedStep> steps, double delta, Direction direction, double floor) {
  const Composition composition = make_composition(steps, direction, kTailShare * delta);
  const double rough = rough_epsilon(composition, delta);
  if (rough <= floor) return rough;
  const Plan plan = make_plan(composition, {rough, std::log(delta)}, {kLogDeltaError, kMostGridPoints});
  return std::min(rough, compose(composition, plan).epsilon(delta));
}

double delta_in(std::span<const RepeatedStep> steps, double epsilon, Direction direction, double floor) {
  const Composition all = make_composition(steps, direction, kLeastTail);
  if (epsilon >= all.most) return kLeastTail;
  double log_delta = std::max(chernoff_log_delta(all, epsilon), kLeastLogDelta);
  for (const Precision& precision :
       {Precision{1e-4, kRoughPoints}, Precision{kLogDeltaError, kMostGridPoints}}) {
    const Composition composition = make_composition(steps, direction, kTailShare * std::exp(log_delta));
    const Plan plan = make_plan(composition, {epsilon, log_delta}, precision);
    const double delta = compose(composition, plan).delta(epsilon);
    log_delta = std::max(std::log(delta), kLeastLogDelta);
    if (delta <= floor) break;
  }
  return std::exp(log_delta);
}

// For GrowingLoss: the discretisation error stated in pld.h, and the number of points that it usually needs.
constexpr double kGrowth = 8;
constexpr Precision kGrowingPrecision{1e-6, std::size_t{1} << 18, 1 / kGrowth};

}  // namespace

struct GrowingLoss::Planned {
  RepeatedStep most;
  double delta;
  std::optional<PlannedLosses> rough[2];  // by direction
  std::optional<PlannedLosses> precise[2];
};

GrowingLoss::GrowingLoss() = default;
GrowingLoss::~GrowingLoss() = default;
GrowingLoss::GrowingLoss(GrowingLoss&&) noexcept = default;
GrowingLoss& GrowingLoss::operator=(GrowingLoss&&) noexcept = default;

double GrowingLoss::epsilon(const RepeatedStep& step, double delta) {
  double most = kGrowth;
  while (most < step.count) most *= kGrowth;
  const RepeatedStep wanted{step.step, most};
  if (planned_ == nullptr || planned_->most != wanted || planned_->delta != delta)
    planned_ = std::make_unique<Planned>(Planned{wanted, delta, {}, {}});
  double worse = 0;
  for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
    const auto epsilon = epsilon_in_direction(step, direction, worse);
    if (!epsilon) return pld_epsilon(std::span(&step, 1), delta);
    worse = std::max(worse, *epsilon);
  }
  return worse;
}

std::optional<double> GrowingLoss::epsilon_in_direction(const RepeatedStep& step, Direction direction,
                                                        double floor) {
  const double delta = planned_->delta;
  const auto side = static_cast<std::size_t>(direction);
  const auto plan = [&](const Precision& precision) {
    const std::span most(&planned_->most, 1);
    const Composition composition = make_composition(most, direction, kTailShare * delta);
    const double about = rough_epsilon(composition, delta);
    return PlannedLosses(composition, make_plan(composition, {about, std::log(delta)}, precision));
  };
  const std::span steps(&step, 1);
  if (floor > 0) {
    if (!planned_->rough[side]) planned_->rough[side] = plan({1e-4, kRoughPoints, 1 / kGrowth});
    const double rough = planned_->rough[side]->compose(steps).epsilon(delta);
    if (rough <= floor) return rough;
  }
  if (!planned_->precise[side]) planned_->precise[side] = plan(kGrowingPrecision);
  const ComposedLoss composed = planned_->precise[side]->compose(steps);
  const double epsilon = composed.epsilon(delta);
  return composed.is_tight(epsilon, delta) ? std::optional(epsilon) : std::nullopt;
}

double pld_delta(std::span<const RepeatedStep> steps, double epsilon, Direction direction) {
  return steps.empty() ? 0 : delta_in(steps, epsilon, direction, 0);
}

double pld_delta(std::span<const RepeatedStep> steps, double epsilon) {
  if (steps.empty()) return 0;
  const double remove = delta_in(steps, epsilon, Direction::kRemove, 0);
  return std::max(remove, delta_in(steps, epsilon, Direction::kAdd, remove));
}

double pld_epsilon(std::span<const RepeatedStep> steps, double delta) {
  if (steps.empty()) return 0;
  const double remove = epsilon_in(steps, delta, Direction::kRemove, 0);
  return std::max(remove, epsilon_in(steps, delta, Direction::kAdd, remove));
}

}  // namespace fedge::privacy
