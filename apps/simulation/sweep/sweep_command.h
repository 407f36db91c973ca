// `fedge-sim sweep`: runs every combination of settings with several seeds, and compares the results.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/simulation/sweep/sweep_execution.h"

namespace fedge::apps {

CLI::App* add_sweep(CLI::App& app, SweepOptions& options);
// Returns the exit code.
int run_sweep(const SweepOptions& options, const std::string& program);

}  // namespace fedge::apps
