// What was run, for the head of report.html: a reader of the page alone knows strategy, model, data and seed.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "run/run_config.h"

namespace fedge::server {

using Facts = std::vector<std::pair<std::string, std::string>>;

// What a run file does not say.
struct RunCircumstances {
  std::size_t parameters = 0;  // of the model; 0 if not known
  std::string version;         // of the program that ran it; empty if not known
};

// Name and value of each fact, in the order in which they are shown. Values are those of the run file, or the
// defaults of the keys that it leaves out.
Facts run_facts(const run::RunConfig& config, const RunCircumstances& circumstances);

}  // namespace fedge::server
