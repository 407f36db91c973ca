// Coordinator: the daemon around RunEngine. The io_context's thread runs links, timers and the
// engine; one worker thread folds updates, applies the aggregate and evaluates, in order. Clients are
// let in by Enrolment; payloads live in a file chunk store under the data directory, so that the
// process holds the aggregate or the model, never the updates.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/event.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"
#include "server/arrival_rate.h"
#include "server/report/final_model.h"
#include "server/report/metrics.h"
#include "server/run_config.h"

namespace boost::asio {
class io_context;
}

namespace fedge::server {

struct CoordinatorOptions {
  std::filesystem::path data_directory;
  protocol::Address listen;
  std::size_t threads = 1;  // for evaluation and folding
  std::string software;     // "fedge-coordinator 0.1.0", told to clients
  ArrivalRules arrivals = {};
  std::function<void(const RoundMetrics&)> on_round;
  std::function<void(const Event&)> on_event;
  // Called once, after the last round or a failure; the models are the run's last (RunState::load_models).
  std::function<void(Result<std::vector<FinalModel>>)> on_finished;
};

class Coordinator {
 public:
  // Opens the data directory (exclusively), loads test data, builds the initial model and listens.
  static Result<std::unique_ptr<Coordinator>> create(boost::asio::io_context& io,
                                                     const CoordinatorOptions& options, const RunConfig& run);
  ~Coordinator();

  protocol::Address address() const;  // where it listens, with the real port
  // Ends the run (clients are told) and lets the io_context run out of work.
  void stop(const std::string& reason);

 private:
  class Impl;
  explicit Coordinator(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fedge::server
