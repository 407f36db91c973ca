// CoordinatorConfig: the content of a coordinator's configuration file (`fedge-coordinator --config`):
// listening address, data directory and limits. The run file describes what is trained.
// docs/reference/coordinator.md lists every key with its default.
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
#include "server/access/oidc/token_verifier.h"
#include "server/coordinator/coordinator.h"
#include "server/traces/trace_endpoint.h"

namespace fedge::server {

// Section [api]: the admin API over HTTPS.
struct ApiConfig {
  std::optional<protocol::Address> listen;  // empty: only the Unix socket
  std::filesystem::path certificate;        // empty: a self-signed certificate is created
  std::filesystem::path key;
  std::vector<std::string> hosts;                  // further names and addresses in that certificate
  std::vector<std::filesystem::path> directories;  // whose files remote users may name
  std::optional<IdentityProvider> oidc;            // section [api.oidc]; empty: only access tokens count
};

struct CoordinatorConfig {
  protocol::Address listen;
  std::vector<protocol::Address> addresses;  // at which clients reach it, at most 4; empty: not given
  std::filesystem::path data_directory;      // empty: not given
  std::size_t runs_at_once = 1;
  double wait_limit_hours = 0;  // 0: runs wait for clients without a limit
  double keep_days = 0;         // 0: runs that have ended are kept for ever
  std::size_t threads = 0;      // per run; 0: number of processors
  std::string log_level;
  std::string log_format;               // "text" or "json"
  protocol::ListenOptions connections;  // the address in it is ignored
  JoinRates joining;
  double swarm_upload_mbit = 0;            // 0: no limit
  std::optional<protocol::Address> admin;  // of the metrics endpoint; empty: no endpoint
  ApiConfig api;
  std::uint64_t audit_rotate = 0;  // size in bytes at which audit.log is closed; 0: never
  std::optional<DirectoryOptions> directory;
  std::optional<TraceEndpoint> traces;  // empty: no traces are sent
};

// trace, debug, info, warning, error, off.
const std::vector<std::string>& log_levels();

// Reads the configuration. An error names the file, line and key, and a correct value. An empty document
// gives the defaults.
Result<CoordinatorConfig> read_coordinator_config(const config::Document& document);
// Returns every key, for the reference documentation.
std::vector<config::KeyDoc> describe_coordinator_config();

}  // namespace fedge::server
