#include "privacy/differential/accounting/calibration.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "privacy/differential/accounting/numeric/search.h"

namespace fedge::privacy {
namespace {

constexpr double kMostNoise = 1e9;
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 20;

Result<void> check(const Guarantee& guarantee) {
  if (!(guarantee.epsilon > 0 && std::isfinite(guarantee.epsilon)))
    return invalid("epsilon: must be a number above 0");
  if (!(guarantee.delta > 0 && guarantee.delta < 1)) return invalid("delta: must be above 0 and below 1");
  return {};
}

Result<double> epsilon_of(const Release& release, double delta, AccountantKind kind,
                          std::span<const Release> beside) {
  Accountant accountant(kind);
  for (const Release& other : beside) FEDGE_TRY_VOID(accountant.add(other));
  FEDGE_TRY_VOID(accountant.add(release));
  return accountant.epsilon(delta);
}

// The least noise up to `high` at which `excess` is not above 0, rounded up. `excess` must not be above 0 at
// `high` and must fall with noise. Uses false position with the Illinois rule, since each value costs a
// composition.
template <class Excess>
double least_noise(const Excess& excess, double high) {
  double at_high = excess(high);
  double low = high;
  double at_low = at_high;
  while (at_low <= 0) {
    high = low;
    at_high = at_low;
    low *= 0.9;
    at_low = excess(low);
  }
  bool raised = false;  // whether the previous step raised `low`
  bool lowered = false;
  double weight_low = at_low;
  double weight_high = -at_high;
  while (high - low > 1e-6 * high && at_high < -1e-8) {
    const double share = weight_low / (weight_low + weight_high);
    const double guess = low + std::clamp(share, 0.02, 0.98) * (high - low);
    const double value = excess(guess);
    if (value > 0) {
      low = guess;
      weight_low = value;
      if (raised) weight_high /= 2;
    } else {
      high = guess;
      at_high = value;
      weight_high = -value;
      if (lowered) weight_low /= 2;
    }
    raised = value > 0;
    lowered = !raised;
  }
  return high;
}

}  // namespace

Result<double> calibrate_noise(const Release& release, const Guarantee& guarantee, AccountantKind kind,
                               std::span<const Release> beside) {
  FEDGE_TRY_VOID(check(guarantee));
  FEDGE_TRY(cost,
            epsilon_of({with_noise(release.mechanism, 1), release.count}, guarantee.delta, kind, beside));
  if (cost == 0) {
    // Without rounds or participants, no noise is needed.
    FEDGE_TRY(bare,
              epsilon_of({with_noise(release.mechanism, 0), release.count}, guarantee.delta, kind, beside));
    if (bare <= guarantee.epsilon) return 0.0;
  }
  const auto excess = [&](double noise, AccountantKind by) {
    const auto epsilon =
        epsilon_of({with_noise(release.mechanism, noise), release.count}, guarantee.delta, by, beside);
    // The clamp is harmless: below 1e-9 of the target the exact value does not matter.
    return std::log(std::max(epsilon.value() / guarantee.epsilon, 1e-9));
  };
  double most = least_argument([&](double noise) {
    return noise > kMostNoise || (noise > 0 && excess(noise, AccountantKind::kRdp) <= 0);
  });
  // The bound of rdp alone may say that the other releases leave nothing.
  if (most > kMostNoise && kind != AccountantKind::kRdp && !beside.empty())
    for (most = 1; most <= kMostNoise && excess(most, kind) > 0;) most *= 2;
  if (most > kMostNoise)
    return invalid(
        "epsilon: even the largest supported noise multiplier, 1e9, does not reach this value; choose a "
        "larger epsilon");
  if (kind == AccountantKind::kRdp) return most;
  // The tight accountant needs at most the noise that rdp needs.
  return least_noise([&](double noise) { return excess(noise, kind); }, most);
}

Result<std::uint64_t> allowed_rounds(const Mechanism& mechanism, const Guarantee& guarantee,
                                     AccountantKind kind, std::span<const Release> beside) {
  FEDGE_TRY_VOID(check(guarantee));
  FEDGE_TRY(account, make_account(mechanism));
  const auto keeps = [&](std::uint64_t rounds, AccountantKind by) {
    Release release{mechanism, rounds};
    if (auto* tree = std::get_if<TreeMechanism>(&release.mechanism)) {
      tree->participation.steps = static_cast<std::uint32_t>(rounds);
      release.count = 1;
    }
    const auto epsilon = epsilon_of(release, guarantee.delta, by, beside);
    return epsilon && *epsilon <= guarantee.epsilon;
  };
  const std::uint64_t most = std::holds_alternative<TreeMechanism>(mechanism) ? kMostSteps : kMostRounds;
  if (account.nothing) return most;
  std::uint64_t good = 0;
  // Searches with the fast accountant first. It never allows more rounds, so the tight one continues from
  // there.
  for (const AccountantKind by : {AccountantKind::kRdp, kind}) {
    if (by == AccountantKind::kRdp && good > 0) break;
    std::uint64_t bad = std::max<std::uint64_t>(1, good + good / 8 + 1);
    while (bad <= most && keeps(bad, by)) {
      good = bad;
      bad += std::max<std::uint64_t>(1, bad / (by == AccountantKind::kRdp ? 1 : 4));
    }
    bad = std::min(bad, most + 1);
    while (bad - good > 1) {
      const std::uint64_t middle = good + (bad - good) / 2;
      (keeps(middle, by) ? good : bad) = middle;
    }
  }
  return good;
}

}  // namespace fedge::privacy
