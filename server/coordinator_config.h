// CoordinatorConfig: what a coordinator's own configuration file (`fedge-coordinator --config`) says: where
// it listens, where it keeps what, and its limits. What is trained is in the run file. Every key, with its
// default: docs/reference/coordinator.md.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/config/reader.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"
#include "server/access/join_limits.h"
#include "server/coordinator/coordinator.h"

namespace fedge::server {

struct CoordinatorConfig {
  protocol::Address listen;
  std::filesystem::path data_directory;  // empty: not said
  std::size_t runs_at_once = 1;
  std::size_t threads = 0;  // of each, 0: as many as there are processors
  std::string log_level;
  protocol::ListenOptions connections;  // its address is `listen`
  JoinRates joining;
  double swarm_upload_mbit = 0;            // 0: no limit
  std::optional<protocol::Address> admin;  // of the metrics endpoint; none without
  std::optional<DirectoryOptions> directory;
};

// trace, debug, info, warning, error, off.
const std::vector<std::string>& log_levels();

// An error names the file and line, the key and what would be right. An empty document is all defaults.
Result<CoordinatorConfig> read_coordinator_config(const config::Document& document);
// Every key, for the reference.
std::vector<config::KeyDoc> describe_coordinator_config();

}  // namespace fedge::server
