// Federated statistics in a run whose coordinator adds noise: each step is a release of the shares of all
// clients (learn/statistics/shares.h) with Gaussian noise, and counts against the run's budget.
#pragma once

#include <vector>

#include "core/result.h"
#include "privacy/differential/accounting/accountant.h"

namespace fedge::run {

struct RunConfig;

// Sets the noise of the run's statistics, in units as fine as it permits, and returns what all steps release;
// nothing if the run has none, or its clients add the noise. kInvalid if there is no such noise, or if the
// statistics alone exceed the budget.
Result<std::vector<privacy::Release>> plan_statistics(RunConfig& run);

}  // namespace fedge::run
