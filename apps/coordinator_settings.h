// The settings of fedge-coordinator: its configuration file and what the command line overrides.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/coordinator_config.h"

namespace fedge::apps {

struct CoordinatorProgramOptions {
  std::string program;  // its name
  std::string config_file;
  bool check_config = false;
  // These override the configuration file.
  std::optional<std::string> data_directory;
  std::optional<std::string> listen;
  std::optional<std::string> admin_listen;
  std::optional<std::string> api_listen;
  std::optional<std::size_t> threads;
  std::optional<std::string> log_level;
  std::optional<std::string> log_format;
  std::string run_file;
  std::optional<std::string> out;
  bool force = false;
  bool out_is_claimed = false;
  std::vector<std::string> assignments;
  int ready_fd = -1;
};

// Returns the configuration with the overrides.
Result<server::CoordinatorConfig> coordinator_settings(const CoordinatorProgramOptions& options);
// Carries out --check-config: prints all that is wrong with the configuration and its paths, and returns the
// exit code.
int check_coordinator_config(const CoordinatorProgramOptions& options);

}  // namespace fedge::apps
