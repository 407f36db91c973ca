// Settings for devices whose availability is a trace that the test writes.
#pragma once

#include <fstream>
#include <string>

#include "tests/support/settings.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {

// A trace in a temporary file, as a setting. Its lines are "client,up_seconds,down_seconds".
struct TraceSetting {
  test::TemporaryDirectory directory;
  Settings settings;

  explicit TraceSetting(const std::string& lines) {
    const auto path = directory.path() / "trace.csv";
    std::ofstream(path) << "client,up_seconds,down_seconds\n" << lines;
    settings = {"simulation.availability.kind=trace", "simulation.availability.file=" + path.string()};
  }
};

}  // namespace fedge::sim
