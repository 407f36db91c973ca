#include "run/privacy/private_statistics.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "core/text.h"
#include "learn/data/dataset.h"
#include "learn/statistics/shares.h"
#include "privacy/differential/accounting/calibration.h"
#include "privacy/differential/noise.h"
#include "run/run_config.h"

namespace fedge::run {
namespace {

constexpr std::size_t kSteps = learn::StatisticsShape::kSteps;
// The part of epsilon that the statistics cost by themselves, unless the run file says otherwise.
constexpr double kStatisticsPart = 0.1;
// The whole of a client's shares is between these.
constexpr std::int64_t kFinestWhole = 1 << 12;
constexpr std::int64_t kCoarsestWhole = 1 << 6;
// Standard deviation of the noise in units of shares, far finer than floating-point rounding could hide.
constexpr double kMostNoise = 0x1p19;
// Shares of all clients, which learn::without_noise() takes.
constexpr double kMostTotal = 0x1p32;

Result<double> noise_for(const DifferentialPrivacySpec& spec) {
  if (spec.statistics_noise > 0) return spec.statistics_noise;
  if (!std::isfinite(spec.epsilon))
    return invalid("data.normalise = \"federated\" requires epsilon or statistics_noise");
  return privacy::calibrate_noise({privacy::GaussianMechanism{}, kSteps},
                                  {spec.epsilon * kStatisticsPart, spec.delta}, spec.accountant);
}

Result<void> choose_units(const learn::DatasetInfo& info, std::size_t clients_of_run,
                          DifferentialPrivacySpec& spec) {
  const double clients = spec.statistics_noise * learn::share_norm(learn::StatisticsShape::of(info));
  spec.statistics_whole = kFinestWhole;
  while (clients * static_cast<double>(spec.statistics_whole) > kMostNoise ||
         static_cast<double>(clients_of_run) * static_cast<double>(spec.statistics_whole) > kMostTotal)
    spec.statistics_whole /= 2;
  const auto variance = privacy::noise_variance(clients * static_cast<double>(spec.statistics_whole));
  if (spec.statistics_whole < kCoarsestWhole || !variance)
    return invalid("statistics_noise = " + number_text(spec.statistics_noise) + " is too much for " +
                   std::to_string(info.columns.size()) + " columns; set data.mean and data.deviation");
  spec.statistics_variance = *variance;
  return {};
}

}  // namespace

privacy::Release DifferentialPrivacySpec::statistics_release(std::uint64_t count) const {
  return {privacy::GaussianMechanism{.noise_multiplier = statistics_noise}, count};
}

Result<std::vector<privacy::Release>> plan_statistics(RunConfig& run) {
  DifferentialPrivacySpec& spec = run.privacy;
  std::vector<privacy::Release> releases;
  if (!run.task.data.federated_normalisation || spec.by_clients()) return releases;
  FEDGE_TRY(noise, noise_for(spec));
  spec.statistics_noise = noise;
  FEDGE_TRY(info, learn::describe(run.task.data));
  if (info.columns.all_slots() > 0)
    return invalid("the noise would hide rare names; set the values of all columns in data.categorical");
  FEDGE_TRY_VOID(choose_units(info, run.task.data.partition.clients, spec));
  releases.push_back(spec.statistics_release(kSteps));
  privacy::Accountant accountant(spec.accountant);
  FEDGE_TRY_VOID(accountant.replace(releases));
  FEDGE_TRY(cost, accountant.epsilon(spec.delta));
  if (cost >= spec.epsilon)
    return invalid("with statistics_noise = " + number_text(spec.statistics_noise) +
                   ", the statistics alone cost epsilon = " + number_text(cost) + ", which is not below " +
                   number_text(spec.epsilon) + "; raise statistics_noise");
  return releases;
}

}  // namespace fedge::run
