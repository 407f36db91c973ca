// Coordinator: the daemon around RunEngine. The io_context's thread runs links, timers and the
// engine; one worker thread folds updates, applies the aggregate and evaluates, in order; a third one makes
// durable what has happened. Clients are let in by Enrolment; payloads live in a file chunk store under the
// data directory, so that the process holds the aggregate or the model, never the updates. A client hears
// that its update was accepted when it survives a power cut, and a model is handed out when it does:
// whatever kills the process, the next one in the same data directory goes on with the same run and comes to
// the same models.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"
#include "server/access/arrival_rate.h"
#include "server/access/join_limits.h"
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
  protocol::ListenOptions connections = {};  // their limits; the address is `listen`
  JoinRates joining = {};
  ArrivalRules arrivals = {};
  std::size_t threads = 1;                            // for evaluation and folding
  std::string software;                               // "fedge-coordinator 0.1.0", told to clients
  std::function<void(const RoundMetrics&)> on_round;  // has become durable
  std::function<void(const Event&)> on_event;
  // Called once, after the last round, with the run's last models (RunState::load_models); the run has ended
  // if that succeeds. Otherwise the next coordinator in the data directory calls it again.
  std::function<Result<void>(std::vector<FinalModel>)> on_finished;
  // Called once, whatever it ends for: it has nothing more to do.
  std::function<void()> on_stopped;
};

class Coordinator {
 public:
  // Opens the data directory (exclusively), takes up the run where it stood or begins it, and listens.
  static Result<std::unique_ptr<Coordinator>> create(boost::asio::io_context& io,
                                                     const CoordinatorOptions& options, const RunConfig& run);
  ~Coordinator();

  protocol::Address address() const;  // where it listens, with the real port
  RunId run() const;                  // the one it leads
  // The rounds that were done before this process.
  const std::vector<RoundMetrics>& history() const;
  // Goes on with the run; once, before the io_context runs.
  void start();
  // Ends the run, as the command-line tool can: on_finished gets the models of the last round that was
  // closed.
  void end_run(const std::string& reason);
  // For metrics, on the io_context's thread.
  struct Activity {
    std::size_t clients = 0;  // connected
    std::size_t tasks = 0;    // given to clients that have not answered yet
  };
  Activity activity() const;
  // Sends the clients away, makes durable what has happened and lets the io_context run out of work. The run
  // can be gone on with.
  void stop(const std::string& reason);
  // Why it came to an end before the run did, if it did: the disk's or the system's fault.
  const std::optional<Error>& failure() const;

 private:
  class Impl;
  explicit Coordinator(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fedge::server
