// A metric of a group of runs, round by round: mean and standard deviation over the seeds. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/simulation/comparison/groups.h"
#include "core/statistics/sample.h"
#include "server/report/charts/comparison_chart.h"

namespace fedge::apps {

// A quantity of a run after each of its rounds; NaN: not measured.
using Quantity = std::function<std::vector<double>(const FinishedRun&)>;

Quantity metric_quantity(std::string name);  // of metric_of() (column.h)
// The bytes since the start of the run, in the directions that `up` and `down` name.
Quantity traffic_quantity(bool up, bool down);
// The energy since the start of the run, in joules.
Quantity energy_quantity();
Quantity round_quantity();

// Summarises the quantity over the runs, for each round that all of them have.
std::vector<SampleSummary> over_runs(const RunGroup& group, const Quantity& quantity);

// Returns the group's band: mean of y with its standard deviation, over the mean of x. It has the rounds that
// all runs have and in which y was measured.
server::Band band_of(const RunGroup& group, const Quantity& x, const Quantity& y);

}  // namespace fedge::apps
