// The files of a comparison: the page, the LaTeX table and the curves as CSV. Pure.
#pragma once

#include <string>
#include <vector>

#include "apps/simulation/comparison/figures.h"
#include "apps/simulation/comparison/groups.h"
#include "apps/simulation/sweep/sweep_results.h"

namespace fedge::apps {

// One self-contained page: a table of the results, the differences to the baseline, and the figures.
std::string comparison_page(const std::string& title, const SweepResults& results,
                            const std::vector<RunGroup>& groups,
                            const std::vector<ComparisonFigure>& figures);
// A tabular environment for the package booktabs.
std::string latex_table(const SweepResults& results);
// One row for each group and round: the number of runs, and mean and standard deviation of each metric that a
// run has (RFC 4180).
std::string curves_csv(const std::vector<RunGroup>& groups);

}  // namespace fedge::apps
