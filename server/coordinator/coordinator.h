// Coordinator: the daemon. It lets clients in (Gatekeeper) and leads the runs of its data directory: those
// that are running, then those that are pending, in the order in which they were submitted, so many at once;
// what the command-line tool asks of a run (RunStore::ask) it does within a second. Each run has a state, a
// worker thread and chunk stores of its own (RunHost); the process holds aggregates or models, never the
// updates. A client hears that its update was accepted when it survives a power cut, and a model is handed
// out when it does: whatever kills the process, the next one in the same data directory goes on with the same
// runs and comes to the same models.
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
#include "dht/node/directory_node.h"
#include "protocol/session/endpoint.h"
#include "run/run_config.h"
#include "server/access/arrival_rate.h"
#include "server/access/join_limits.h"
#include "server/report/final_model.h"
#include "server/report/metrics.h"
#include "server/store/run_store.h"

namespace boost::asio {
class io_context;
}

namespace fedge::server {

// The coordinator as a node of the directory, in which clients find it.
struct DirectoryOptions {
  dht::NodeSettings node;
  std::vector<protocol::Address> announce;  // where clients reach it; none: where it listens
};

struct CoordinatorOptions {
  std::filesystem::path data_directory;
  protocol::Address listen;
  protocol::ListenOptions connections = {};  // their limits; the address is `listen`
  JoinRates joining = {};
  ArrivalRules arrivals = {};
  std::size_t runs_at_once = 1;    // that are led; the others wait
  std::size_t threads = 1;         // of a run, for evaluation and folding
  std::uint64_t upload_limit = 0;  // bytes of chunks a second that are exchanged in swarms; 0: none
  std::string software;            // "fedge-coordinator 0.1.0", told to clients
  std::optional<DirectoryOptions> directory = {};
};

// What is told of the runs, on the io_context's thread. All must be set.
struct RunCallbacks {
  // It is led from now on; these of its rounds were done before.
  std::function<Result<void>(const RunRecord&, const run::RunConfig&, const std::vector<RoundMetrics>&)>
      on_led;
  // A round has become durable.
  std::function<void(RunNumber, const RoundMetrics&)> on_round;
  // Called with the run's last models (RunState::load_models); the run is over if that succeeds. Otherwise
  // the next coordinator in the data directory calls it again.
  std::function<Result<void>(RunNumber, std::vector<FinalModel>)> on_models;
  // It is led no more: finished or stopped; paused by an operator; or it could not be taken up, which the
  // reason says: failed, or paused if it had begun.
  std::function<void(RunNumber, RunStatus, const std::string& reason)> on_left;
  std::function<void(const Event&)> on_event;
  // Called once, whatever the coordinator ends for: it has nothing more to do.
  std::function<void()> on_stopped;
};

class Coordinator {
 public:
  // Opens the data directory (exclusively) and listens.
  static Result<std::unique_ptr<Coordinator>> create(boost::asio::io_context& io,
                                                     const CoordinatorOptions& options,
                                                     const RunCallbacks& callbacks);
  ~Coordinator();

  protocol::Address address() const;  // where it listens, with the real port
  // Before start(): the run with this file that has not ended, or a new one. kRefused if another one there
  // has not ended; other errors name the file or the key of the run file at fault.
  Result<RunRecord> submit(const run::RunConfig& run);
  // Lets clients in and leads the runs; once, before the io_context runs.
  void start();
  // For metrics, on the io_context's thread.
  struct Activity {
    std::size_t clients = 0;  // connected
    std::size_t tasks = 0;    // given to clients that have not answered yet
  };
  Activity activity() const;
  // How many clients may connect; else why the enrolment book cannot be read.
  Result<std::size_t> enrolled() const;
  // Why the enrolment book or the list of runs cannot be read, or written where others find it.
  Result<void> check() const;
  // Null without a directory.
  dht::NetworkDirectory* directory() const;
  // As they are in the store, a second ago at the latest.
  const std::vector<RunRecord>& runs() const;
  // Sends the clients away, makes durable what has happened and lets the io_context run out of work. The runs
  // can be gone on with.
  void stop(const std::string& reason);
  // Why it came to an end by itself, if it did: the disk's or the system's fault.
  const std::optional<Error>& failure() const;

 private:
  class Impl;
  explicit Coordinator(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fedge::server
