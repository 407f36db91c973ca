// The admin pages of fedge-coordinator: hears what the coordinator reports and, if the user asked for it,
// serves /metrics, /healthz and /readyz.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/event.h"
#include "core/result.h"
#include "server/admin/admin_server.h"
#include "server/admin/coordinator_metrics.h"
#include "server/coordinator/coordinator.h"

namespace fedge::apps {

class CoordinatorAdmin {
 public:
  explicit CoordinatorAdmin(const std::filesystem::path& data_directory);

  // Puts the event into the log and the metrics.
  void log(const Event& event);
  void add(server::RunNumber run, const server::RoundMetrics& round) { metrics_.add(run, round); }
  void forget(server::RunNumber run) { metrics_.forget(run); }
  // Begins to serve at this address, and writes where into the data directory's file admin-address; no
  // address takes the file away. The coordinator must listen already.
  Result<void> listen(boost::asio::io_context& io, const std::optional<protocol::Address>& address,
                      const server::Coordinator& coordinator);
  void stop();

 private:
  std::filesystem::path address_file_;
  const server::Coordinator* coordinator_ = nullptr;
  server::CoordinatorMetrics metrics_;
  std::unique_ptr<server::AdminServer> server_;
};

}  // namespace fedge::apps
