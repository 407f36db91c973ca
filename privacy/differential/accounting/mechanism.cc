#include "privacy/differential/accounting/mechanism.h"

#include <cmath>

#include "privacy/differential/accounting/rdp_curves.h"

namespace fedge::privacy {
namespace {

Result<void> check_rate(double rate) {
  if (rate >= 0 && rate <= 1) return {};
  return invalid("sampling rate: must be from 0 to 1, not " + std::to_string(rate));
}

Result<void> check_noise(const char* name, double noise) {
  if (noise >= 0 && std::isfinite(noise)) return {};
  return invalid(std::string(name) + ": must be a number, 0 or above, not " + std::to_string(noise));
}

Result<void> check_sensitivity(const GridSensitivity& sensitivity) {
  const auto fits = [](double value, double least) { return value >= least && std::isfinite(value); };
  if (!fits(sensitivity.l2, 0)) return invalid("L2 sensitivity: must be a number, 0 or above");
  if (!fits(sensitivity.l1, sensitivity.l2))
    return invalid("L1 sensitivity: must not be below the L2 sensitivity");
  if (!fits(sensitivity.dimension, 1)) return invalid("dimension: must be 1 or above");
  return {};
}

Account sampled(RdpCurve curve, double rate) {
  if (rate == 1) return {std::move(curve), std::nullopt};
  return {[curve = std::move(curve), rate](double order) { return sampled_rdp(curve, rate, order); },
          std::nullopt};
}

Result<Account> account(const GaussianMechanism& m) {
  FEDGE_TRY_VOID(check_rate(m.sampling_rate));
  FEDGE_TRY_VOID(check_noise("noise multiplier", m.noise_multiplier));
  const SampledGaussian step{m.sampling_rate, m.noise_multiplier};
  return Account{[step](double order) { return sampled_gaussian_rdp(step, order); },
                 NoisyStep{Noise::kGaussian, m.sampling_rate, m.noise_multiplier}, m.sampling_rate == 0,
                 m.noise_multiplier == 0};
}

Result<Account> account(const LaplaceMechanism& m) {
  FEDGE_TRY_VOID(check_rate(m.sampling_rate));
  FEDGE_TRY_VOID(check_noise("scale", m.scale));
  Account account =
      sampled([scale = m.scale](double order) { return laplace_rdp(scale, order); }, m.sampling_rate);
  account.loss = NoisyStep{Noise::kLaplace, m.sampling_rate, m.scale};
  account.nothing = m.sampling_rate == 0;
  account.everything = m.scale == 0;
  return account;
}

Result<Account> account(const FixedCohortMechanism& m) {
  FEDGE_TRY_VOID(check_rate(m.sampling_rate));
  FEDGE_TRY_VOID(check_noise("noise multiplier", m.noise_multiplier));
  const SampledGaussian step{m.sampling_rate, m.noise_multiplier};
  return Account{[step](double order) { return fixed_cohort_gaussian_rdp(step, order); }, std::nullopt,
                 m.sampling_rate == 0, m.noise_multiplier == 0, true};
}

Result<Account> account(const SkellamMechanism& m) {
  FEDGE_TRY_VOID(check_rate(m.sampling_rate));
  FEDGE_TRY_VOID(check_noise("variance", m.variance));
  FEDGE_TRY_VOID(check_sensitivity(m.sensitivity));
  Account account = sampled([variance = m.variance, sensitivity = m.sensitivity](
                                double order) { return skellam_rdp(variance, sensitivity, order); },
                            m.sampling_rate);
  account.nothing = m.sampling_rate == 0;
  account.everything = m.variance == 0;
  return account;
}

Result<Account> account(const DistributedGaussianMechanism& m) {
  FEDGE_TRY_VOID(check_rate(m.sampling_rate));
  FEDGE_TRY_VOID(check_noise("local sigma", m.noise.local_sigma));
  if (!(m.noise.clients >= 1 && m.noise.clients <= 1e8))
    return invalid("clients: must be from 1 to 100000000, not " + std::to_string(m.noise.clients));
  FEDGE_TRY_VOID(check_sensitivity(m.sensitivity));
  Account account = sampled([noise = summed(m.noise), sensitivity = m.sensitivity](
                                double order) { return distributed_gaussian_rdp(noise, sensitivity, order); },
                            m.sampling_rate);
  account.nothing = m.sampling_rate == 0;
  account.everything = m.noise.local_sigma == 0;
  return account;
}

// All releases are functions of the noisy nodes, which together are one Gaussian mechanism.
Result<Account> account(const TreeMechanism& m) {
  FEDGE_TRY(squared, tree_squared_sensitivity(m.participation));
  return account(GaussianMechanism{1, m.noise_multiplier / std::sqrt(squared)});
}

}  // namespace

Result<Account> make_account(const Mechanism& mechanism) {
  return std::visit([](const auto& each) { return account(each); }, mechanism);
}

Mechanism with_noise(Mechanism mechanism, double noise) {
  struct Setter {
    double noise;
    void operator()(GaussianMechanism& m) const { m.noise_multiplier = noise; }
    void operator()(LaplaceMechanism& m) const { m.scale = noise; }
    void operator()(FixedCohortMechanism& m) const { m.noise_multiplier = noise; }
    void operator()(SkellamMechanism& m) const { m.variance = noise * noise; }
    void operator()(DistributedGaussianMechanism& m) const { m.noise.local_sigma = noise; }
    void operator()(TreeMechanism& m) const { m.noise_multiplier = noise; }
  };
  std::visit(Setter{noise}, mechanism);
  return mechanism;
}

}  // namespace fedge::privacy
