// The figures of a comparison. Pure.
#pragma once

#include <string>
#include <vector>

#include "apps/simulation/comparison/groups.h"

namespace fedge::apps {

struct ComparisonFigure {
  std::string file;     // name without extension: "accuracy-over-rounds"
  std::string section;  // heading of the page under which it is
  std::string title;
  std::string svg;  // a complete file
};

// Returns the figures for which there are data, in the order of the page.
std::vector<ComparisonFigure> comparison_figures(const std::vector<RunGroup>& groups);

}  // namespace fedge::apps
