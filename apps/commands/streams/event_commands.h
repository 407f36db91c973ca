// `fedge model events`: the events that a model of segmentation finds in the segments of devices' streams,
// and those that several devices confirm. Adds itself to `fedge model`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::apps {

struct EventOptions {
  std::string model;
  std::vector<std::string> directories;
  std::uint32_t confirm = 0;  // devices; 0: all events are listed
  double within = 5;          // metres
};

class EventCommands {
 public:
  explicit EventCommands(CLI::App& app);
  // The output of the command if it was parsed.
  std::optional<Result<std::string>> run() const;

 private:
  EventOptions options_;
  CLI::App* events_;
};

}  // namespace fedge::apps
