#include "privacy/differential/accounting/accountant.h"

#include <algorithm>
#include <cmath>

#include "privacy/differential/accounting/gaussian.h"
#include "privacy/differential/accounting/numeric/infinity.h"

namespace fedge::privacy {
namespace {

constexpr std::size_t kMostLosses = 32;

// Replaces plain Gaussians by the single Gaussian that they compose to: inverse variances add up.
std::vector<RepeatedStep> merge_gaussians(const std::vector<RepeatedStep>& steps) {
  std::vector<RepeatedStep> merged;
  double precision = 0;
  for (const RepeatedStep& each : steps) {
    if (each.step.noise == Noise::kGaussian && each.step.sampling_rate == 1)
      precision += each.count / (each.step.scale * each.step.scale);
    else
      merged.push_back(each);
  }
  if (precision > 0) merged.push_back({{Noise::kGaussian, 1, 1 / std::sqrt(precision)}, 1});
  return merged;
}

// Whether a single boundary gives the exact answer.
bool has_closed_form(const std::vector<RepeatedStep>& steps) {
  return steps.size() == 1 && steps[0].count == 1 && steps[0].step.noise == Noise::kGaussian;
}

}  // namespace

Result<void> Accountant::add(const Release& release) {
  FEDGE_TRY(account, make_account(release.mechanism));
  if (!entries_.empty() && entries_.front().account.replaces != account.replaces)
    return invalid(
        "one accountant cannot combine mechanisms that protect against adding or removing a client with "
        "mechanisms that protect against replacing one");
  for (Entry& entry : entries_) {
    if (entry.mechanism != release.mechanism) continue;
    entry.count += release.count;
    return {};
  }
  entries_.push_back({release.mechanism, std::move(account), release.count, {}});
  return {};
}

std::vector<Release> Accountant::releases() const {
  std::vector<Release> releases;
  for (const Entry& entry : entries_) releases.push_back({entry.mechanism, entry.count});
  return releases;
}

Result<void> Accountant::replace(std::span<const Release> releases) {
  Accountant next(kind_);
  for (const Release& release : releases) {
    const auto same = std::ranges::find(entries_, release.mechanism, &Entry::mechanism);
    FEDGE_TRY_VOID(next.add(release));
    if (same != entries_.end() && next.entries_.back().mechanism == release.mechanism)
      next.entries_.back().curve = same->curve;
  }
  *this = std::move(next);
  return {};
}

// Caches each mechanism's curve at the recommended orders, which are requested repeatedly.
RdpCurve Accountant::curve() const {
  return [this, &orders = recommended_orders()](double order) {
    const auto found = std::ranges::lower_bound(orders, order);
    const bool recommended = found != orders.end() && *found == order;
    double sum = 0;
    for (const Entry& entry : entries_) {
      if (entry.count == 0 || entry.account.nothing) continue;
      if (recommended && entry.curve.empty())
        for (const double each : orders) entry.curve.push_back(entry.account.rdp(each));
      sum += static_cast<double>(entry.count) *
             (recommended ? entry.curve[static_cast<std::size_t>(found - orders.begin())]
                          : entry.account.rdp(order));
    }
    return sum;
  };
}

bool Accountant::unbounded() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) {
    return entry.count > 0 && entry.account.everything && !entry.account.nothing;
  });
}

bool Accountant::has_losses() const {
  return kind_ == AccountantKind::kPld &&
         std::ranges::all_of(entries_, [](const Entry& entry) { return entry.account.loss.has_value(); });
}

std::vector<RepeatedStep> Accountant::losses() const {
  std::vector<RepeatedStep> steps;
  for (const Entry& entry : entries_)
    if (entry.count > 0 && !entry.account.nothing)
      steps.push_back({*entry.account.loss, static_cast<double>(entry.count)});
  return merge_gaussians(steps);
}

Result<double> Accountant::epsilon(double delta) const { return epsilon(delta, nullptr); }

Result<double> Accountant::epsilon(double delta, GrowingLoss& growing) const {
  return epsilon(delta, &growing);
}

Result<double> Accountant::epsilon(double delta, GrowingLoss* growing) const {
  if (!(delta > 0 && delta < 1))
    return invalid("delta: must be above 0 and below 1, not " + std::to_string(delta));
  if (unbounded()) return kInfinity;
  const double bound = best_rdp_epsilon(curve(), delta).value;
  if (!has_losses()) return bound;
  const std::vector<RepeatedStep> steps = losses();
  if (steps.empty() || steps.size() > kMostLosses) return bound;
  if (has_closed_form(steps))
    return std::min(bound,
                    sampled_gaussian_epsilon({steps[0].step.sampling_rate, steps[0].step.scale}, delta));
  if (growing != nullptr && steps.size() == 1) return std::min(bound, growing->epsilon(steps[0], delta));
  return std::min(bound, pld_epsilon(steps, delta));
}

Result<double> Accountant::delta(double epsilon) const {
  if (!(epsilon >= 0)) return invalid("epsilon: must be 0 or above, not " + std::to_string(epsilon));
  if (unbounded()) return 1;
  const double bound = best_rdp_delta(curve(), epsilon).value;
  if (!has_losses()) return bound;
  const std::vector<RepeatedStep> steps = losses();
  if (steps.empty() || steps.size() > kMostLosses) return bound;
  if (!has_closed_form(steps)) return std::min(bound, pld_delta(steps, epsilon));
  return std::min(bound, sampled_gaussian_delta({steps[0].step.sampling_rate, steps[0].step.scale}, epsilon));
}

}  // namespace fedge::privacy
