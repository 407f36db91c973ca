#include "run/privacy/privacy_ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/text.h"
#include "learn/statistics/federated_statistics.h"

namespace fedge::run {
namespace {

std::vector<privacy::Release> releases_of(const DifferentialPrivacySpec& spec,
                                          const PrivacyLedger::Charges& charges) {
  std::vector<privacy::Release> releases;
  if (charges.statistics > 0) releases.push_back(spec.statistics_release(charges.statistics));
  for (const auto& [chance, count] : charges.rounds) releases.push_back(spec.release(chance, count));
  return releases;
}

}  // namespace

// True if the charges are only planned releases, within the budget.
bool PrivacyLedger::as_planned(const Charges& charges) const {
  if (charges.statistics > 0 &&
      (spec_.statistics_whole == 0 || charges.statistics > learn::StatisticsShape::kSteps))
    return false;
  if (charges.rounds.empty()) return true;
  const auto& [chance, count] = *charges.rounds.begin();
  return charges.rounds.size() == 1 && chance == spec_.sampling_rate && count <= spec_.most_releases;
}

Result<void> PrivacyLedger::charge(double chance) {
  Charges charges = charges_;
  ++charges.rounds[std::max(chance, spec_.sampling_rate)];
  return take(std::move(charges));
}

Result<void> PrivacyLedger::charge_statistics() {
  Charges charges = charges_;
  ++charges.statistics;
  return take(std::move(charges));
}

// Takes up one more release.
Result<void> PrivacyLedger::take(Charges charges) {
  bool within = as_planned(charges);
  if (!within && std::isfinite(spec_.epsilon)) {
    privacy::Accountant accountant(spec_.accountant);
    FEDGE_TRY_VOID(accountant.replace(releases_of(spec_, charges)));
    FEDGE_TRY(epsilon, accountant.epsilon(spec_.delta));
    within = epsilon <= spec_.epsilon;
  }
  if (!within && std::isfinite(spec_.epsilon))
    return Error{ErrorCode::kRefused,
                 "the privacy budget is spent: one more round would exceed differential_privacy.epsilon = " +
                     number_text(spec_.epsilon)};
  charges_ = std::move(charges);
  return {};
}

Result<double> PrivacyLedger::epsilon() {
  FEDGE_TRY_VOID(accountant_.replace(releases_of(spec_, charges_)));
  FEDGE_TRY(epsilon, accountant_.epsilon(spec_.delta, growing_));
  // Planned releases never exceed the budget: ignores the last digits of a numerical bound.
  if (as_planned(charges_)) epsilon = std::min(epsilon, spec_.epsilon);
  epsilon_ = std::max(epsilon_, epsilon);
  return epsilon_;
}

Result<void> PrivacyLedger::take_up(Charges charges) {
  const Error other{ErrorCode::kCorrupt, "the privacy budget in the checkpoint belongs to another run"};
  for (const auto& [chance, releases] : charges.rounds)
    if (!(chance >= spec_.sampling_rate && chance <= 1) || releases == 0 || !spec_.on()) return other;
  if (charges.statistics > 0 && spec_.statistics_whole == 0) return other;
  charges_ = std::move(charges);
  return {};
}

}  // namespace fedge::run
