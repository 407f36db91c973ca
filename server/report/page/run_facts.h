// Facts about a run for the head of report.html, such as strategy, model, data and seed.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "run/run_config.h"

namespace fedge::server {

using Facts = std::vector<std::pair<std::string, std::string>>;

// Facts that the run file does not contain.
struct RunCircumstances {
  std::size_t parameters = 0;  // of the model; 0 if not known
  std::string version;         // of the program that ran it; empty if not known
  std::string failure;         // why the run failed; empty if it did not
};

// Returns the name and value of each fact, in display order. Values come from the run file, or are the
// defaults of omitted keys.
Facts run_facts(const run::RunConfig& config, const RunCircumstances& circumstances);

}  // namespace fedge::server
