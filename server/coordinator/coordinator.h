// Coordinator: the daemon. It admits clients (Gatekeeper) and executes the runs of its data directory, at
// most runs_at_once at a time. Running runs come first, then pending ones in order of submission. It
// applies requests of the command-line tool (RunStore::ask) within a second. Each run has a separate state,
// worker thread and chunk stores (RunHost). The process holds aggregates and models in memory, never
// updates. Acknowledged updates and distributed models survive a power cut. After a crash, the next process
// in the data directory continues the same runs and computes the same models.
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
#include "server/live/live.h"
#include "server/report/final_model.h"
#include "server/report/metrics.h"
#include "server/store/run_store.h"
#include "server/traces/trace_exporter.h"

namespace boost::asio {
class io_context;
}

namespace fedge::server {

// Settings of the coordinator's node in the directory, through which clients find it.
struct DirectoryOptions {
  dht::NodeSettings node;
  // Where clients reach it; empty: CoordinatorOptions::addresses or, without them, the listening address.
  std::vector<protocol::Address> announce;
};

struct CoordinatorOptions {
  std::filesystem::path data_directory;
  protocol::Address listen;
  std::vector<protocol::Address> addresses = {};  // at which clients reach it, at most 4; empty: not told
  protocol::ListenOptions connections = {};       // limits; the address in it is ignored
  JoinRates joining = {};
  ArrivalRules arrivals = {};
  // How long to wait for the directory's lock: the command-line tool holds it while a command works on the
  // directory of a stopped coordinator.
  Duration lock_patience{};
  std::size_t runs_at_once = 1;    // runs executed at once; the others wait
  std::size_t threads = 1;         // per run, for evaluation and aggregation
  Duration wait_limit{};           // a run that waits for clients for longer is paused; 0: no limit
  std::uint64_t audit_rotate = 0;  // size in bytes at which audit.log is closed; 0: never
  std::uint64_t upload_limit = 0;  // bytes per second of chunks sent in swarms; 0: no limit
  std::string software;            // sent to clients, for example "fedge-coordinator 0.1.0"
  std::optional<DirectoryOptions> directory = {};
  std::optional<TraceEndpoint> traces = {};  // where traces of rounds are sent; empty: nowhere
};

// Callbacks about runs, on the io_context's thread. All must be set.
struct RunCallbacks {
  // The coordinator begins to execute the run; the metrics are those of rounds done before.
  std::function<Result<void>(const RunRecord&, const run::RunConfig&, const std::vector<RoundMetrics>&)>
      on_led;
  // A round has become durable.
  std::function<void(RunNumber, const RoundMetrics&)> on_round;
  // Called with the models of a round that run.keep_models keeps, before the round is durable and perhaps
  // again after a restart; on another thread than the other functions.
  std::function<Result<void>(RunNumber, RoundNumber, const std::vector<FinalModel>&)> on_kept =
      [](RunNumber, RoundNumber, const std::vector<FinalModel>&) { return Result<void>(); };
  // Called with the run's last models (RunState::load_models) and why it failed (empty if it did not). The
  // run ends if this succeeds; otherwise the next coordinator in the data directory calls it again.
  std::function<Result<void>(RunNumber, std::vector<FinalModel>, const std::string& failure)> on_models;
  // The coordinator stops executing the run. It finished or was stopped, was paused by an operator, or
  // could not be opened: then it failed, or is paused if it had begun, and `reason` says why.
  std::function<void(RunNumber, RunStatus, const std::string& reason)> on_left;
  std::function<void(const Event&)> on_event;
  // Called once when the coordinator has stopped, for whatever reason.
  std::function<void()> on_stopped;
};

class Coordinator {
 public:
  // Opens the data directory (exclusively) and listens.
  static Result<std::unique_ptr<Coordinator>> create(boost::asio::io_context& io,
                                                     const CoordinatorOptions& options,
                                                     const RunCallbacks& callbacks);
  ~Coordinator();

  protocol::Address address() const;  // listening address, with the actual port
  // Call before start(). Returns the unfinished run with this run file, or submits a new run. kRefused if
  // another run there has not ended; other errors name the file or the run file's key at fault.
  Result<RunRecord> submit(const run::RunConfig& run);
  // Admits clients and executes the runs. Call once, before the io_context runs.
  void start();
  // Counts for metrics; call on the io_context's thread.
  struct Activity {
    std::size_t clients = 0;  // connected
    std::size_t tasks = 0;    // assigned and not answered yet
  };
  Activity activity() const;
  // Returns how many clients may connect, or why the enrolment book cannot be read.
  Result<std::size_t> enrolled() const;
  // Returns why the enrolment book or the list of runs cannot be used: unreadable, removed or replaced.
  Result<void> check() const;
  // What others may watch, on any thread.
  std::shared_ptr<Live> live() const;
  // Nothing unless traces are sent.
  std::optional<TraceCounts> traces() const;
  // Null without a directory.
  dht::NetworkDirectory* directory() const;
  // Returns the runs in the store, at most about a second old.
  const std::vector<RunRecord>& runs() const;
  // Disconnects the clients, makes pending inputs durable and lets the io_context run out of work. The runs
  // can be continued later.
  void stop(const std::string& reason);
  // The disk or system error that stopped the coordinator, if one did.
  const std::optional<Error>& failure() const;

 private:
  class Impl;
  explicit Coordinator(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fedge::server
