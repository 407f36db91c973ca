#include "run/privacy/privacy_ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.h"

namespace fedge::run {
namespace {

Result<double> cost(const DifferentialPrivacySpec& spec, const PrivacyLedger::Charges& charges) {
  privacy::Accountant accountant(spec.accountant);
  for (const auto& [chance, releases] : charges)
    FEDGE_TRY_VOID(accountant.add(spec.release(chance, releases)));
  return accountant.epsilon(spec.delta);
}

}  // namespace

Result<void> PrivacyLedger::charge(double chance) {
  chance = std::max(chance, spec_.sampling_rate);
  Charges charges = charges_;
  ++charges[chance];
  bool within =
      charges.size() == 1 && chance == spec_.sampling_rate && charges[chance] <= spec_.most_releases;
  if (!within && std::isfinite(spec_.epsilon)) {
    FEDGE_TRY(epsilon, cost(spec_, charges));
    within = epsilon <= spec_.epsilon;
  }
  if (!within && std::isfinite(spec_.epsilon))
    return Error{ErrorCode::kRefused, "one more round would cost more than differential_privacy.epsilon = " +
                                          number_text(spec_.epsilon)};
  charges_ = std::move(charges);
  return {};
}

Result<double> PrivacyLedger::epsilon() {
  FEDGE_TRY(epsilon, cost(spec_, charges_));
  epsilon_ = std::max(epsilon_, epsilon);
  return epsilon_;
}

Result<void> PrivacyLedger::take_up(Charges charges) {
  for (const auto& [chance, releases] : charges)
    if (!(chance >= spec_.sampling_rate && chance <= 1) || releases == 0 || !spec_.on())
      return Error{ErrorCode::kCorrupt, "what the checkpoint says of the privacy budget is another run's"};
  charges_ = std::move(charges);
  return {};
}

}  // namespace fedge::run
