// CoordinatorAdmin: the admin API and the admin pages of fedge-coordinator. Records the coordinator's events,
// serves the API and, if the user asked for it, /metrics, /healthz and /readyz.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "server/access/oidc/token_verifier.h"
#include "server/admin/coordinator_metrics.h"
#include "server/api/api_server.h"
#include "server/coordinator/coordinator.h"
#include "server/http/http_server.h"

namespace fedge::apps {

class CoordinatorAdmin {
 public:
  explicit CoordinatorAdmin(const std::filesystem::path& data_directory);

  // Puts the event into the log and the metrics.
  void log(const Event& event);
  void add(server::RunNumber run, const server::RoundMetrics& round) { metrics_.add(run, round); }
  void resume(server::RunNumber run, const std::vector<server::RoundMetrics>& history) {
    metrics_.resume(run, history);
  }
  void forget(server::RunNumber run) { metrics_.forget(run); }
  // Serves at this address and writes the actual address to the file admin-address in the data directory;
  // without an address removes that file. The coordinator must already listen.
  Result<void> listen(boost::asio::io_context& io, const std::optional<protocol::Address>& address,
                      const server::Coordinator& coordinator);
  // Returns what accepts tokens of this identity provider; null if none is configured. Its events are logged
  // on the thread of `io`.
  Result<std::shared_ptr<server::TokenVerifier>> identity_provider(
      boost::asio::io_context& io, const std::optional<server::IdentityProvider>& provider);
  // Serves the admin API: on the Unix socket, and over HTTPS if an address is given. Writes that address to
  // the file api-address in the data directory.
  Result<void> serve_api(const server::ApiServerOptions& options);
  void stop();

 private:
  std::filesystem::path address_file_;
  std::filesystem::path api_address_file_;
  const server::Coordinator* coordinator_ = nullptr;
  server::CoordinatorMetrics metrics_;
  std::unique_ptr<server::HttpServer> pages_;
  std::unique_ptr<server::ApiServer> api_;
};

}  // namespace fedge::apps
