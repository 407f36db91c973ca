// `fedge-client status` and `doctor`: the daemon's state, and checks of what may keep the client from
// taking part.
#pragma once

#include <cstddef>
#include <string>

namespace fedge::apps {

struct HealthOptions {
  std::string state_directory;
  std::size_t cache_bytes = 0;  // limit of the daemon's cache
  bool json = false;
};

// Both print to standard output and return the exit code.
int client_status(const std::string& program, const HealthOptions& options);
// kFailed if anything keeps the client from taking part.
int client_doctor(const std::string& program, const HealthOptions& options);

}  // namespace fedge::apps
