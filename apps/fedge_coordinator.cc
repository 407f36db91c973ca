// fedge-coordinator: the daemon of an organisation that hosts a federation.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <optional>

#include "apps/common.h"
#include "apps/coordinator_admin.h"
#include "apps/run_results.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "server/audit_log.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator_config.h"

namespace {

constexpr const char* kProgram = "fedge-coordinator";
constexpr const char* kExamples = R"(
Examples:
  fedge-coordinator --data-dir /var/lib/fedge --listen 0.0.0.0:7433
                                                     leads the runs of: fedge run submit
  fedge-coordinator --data-dir /var/lib/fedge --run fashion.toml --out results
                                                     one run, and ends with it
  fedge-coordinator --config coordinator.toml --check-config
  fedge token create --data-dir /var/lib/fedge --address fedge.example.org:7433
                                                     then, on a device: fedge-client join TOKEN
)";

struct Options {
  std::string config_file;
  bool check_config = false;
  // Above what the configuration file says.
  std::optional<std::string> data_directory;
  std::optional<std::string> listen;
  std::optional<std::string> admin_listen;
  std::optional<std::size_t> threads;
  std::optional<std::string> log_level;
  std::string run_file;
  std::string out = "fedge-out";
  std::vector<std::string> assignments;
  int ready_fd = -1;
};

// Tells the log where we listen, and a supervisor: one line on the descriptor it gave us.
void announce(int fd, const std::string& address) {
  fedge::apps::log_event(
      fedge::Event{fedge::Severity::kInfo, "coordinator.listening", {}}.with("address", address));
  if (fd < 0) return;
  const std::string line = address + "\n";
  if (::write(fd, line.data(), line.size()) < 0) std::perror("fedge-coordinator: --ready-fd");
  ::close(fd);
}

fedge::Result<fedge::run::RunConfig> load_run(const Options& options) {
  FEDGE_TRY(document, fedge::apps::load_document(options.run_file, options.assignments));
  return fedge::run::read_run_config(document);
}

fedge::Result<fedge::server::CoordinatorConfig> settings(const Options& options) {
  fedge::config::Document document{"the command line", {}};
  if (!options.config_file.empty()) {
    FEDGE_TRY(loaded, fedge::apps::load_document(options.config_file, {}));
    document = std::move(loaded);
  }
  FEDGE_TRY(config, fedge::server::read_coordinator_config(document));
  if (options.listen) {
    FEDGE_TRY(listen, fedge::protocol::parse_address(*options.listen));
    config.listen = listen;
  }
  if (options.admin_listen) {
    const auto listen = fedge::protocol::parse_address(*options.admin_listen);
    if (!listen) return listen.error().with_prefix("--admin-listen: ");
    config.admin = *listen;
  }
  if (options.data_directory) config.data_directory = *options.data_directory;
  if (options.threads) config.threads = *options.threads;
  if (config.threads == 0) config.threads = fedge::available_processors();
  if (options.log_level) config.log_level = *options.log_level;
  return config;
}

int check_config(const Options& options) {
  const auto config = settings(options);
  if (!config) return fedge::apps::report_failure(kProgram, config.error());
  std::printf("%s is right\n", options.config_file.c_str());
  return fedge::apps::kOk;
}

int wrong_usage(const char* what) {
  std::fprintf(stderr, "%s: %s\nRun with --help for more information.\n", kProgram, what);
  return fedge::apps::kWrongUsage;
}

// The daemon and what listens to it, for as long as the process lives.
class Daemon {
 public:
  Daemon(const Options& options, fedge::server::CoordinatorConfig settled)
      : options_(options),
        settled_(std::move(settled)),
        admin_(settled_.data_directory),
        signals_(io_, SIGINT, SIGTERM),
        results_(settled_.data_directory) {}

  int run() {
    if (const auto ready = set_up(); !ready) return fedge::apps::report_failure(kProgram, ready.error());
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) coordinator_->stop("the coordinator was told to stop");
    });
    if (!given_) listening();
    coordinator_->start();
    io_.run();
    note(coordinator_->failure());
    if (const auto recorded = record("coordinator.stopped"); !recorded) note(recorded.error());
    if (failure_) return fedge::apps::report_failure(kProgram, *failure_);
    std::printf("%s", ended_   ? results_.summary().c_str()
                      : given_ ? "stopped; the same command goes on with the run\n"
                               : "stopped; the same command goes on with the runs\n");
    return fedge::apps::kOk;
  }

 private:
  fedge::Result<void> set_up() {
    std::optional<fedge::run::RunConfig> config;
    if (!options_.run_file.empty()) {
      FEDGE_TRY(loaded, load_run(options_));
      config = std::move(loaded);
    }
    FEDGE_TRY(coordinator, fedge::server::Coordinator::create(
                               io_,
                               {.data_directory = settled_.data_directory,
                                .listen = settled_.listen,
                                .connections = settled_.connections,
                                .joining = settled_.joining,
                                .runs_at_once = settled_.runs_at_once,
                                .threads = settled_.threads,
                                .upload_limit = fedge::apps::bytes_per_second(settled_.swarm_upload_mbit),
                                .software = fedge::apps::software(kProgram),
                                .directory = directory()},
                               callbacks()));
    coordinator_ = std::move(coordinator);
    if (config) {
      FEDGE_TRY(submitted, coordinator_->submit(*config));
      given_ = submitted.number;
      results_.show(submitted.number, options_.out);
    }
    FEDGE_TRY_VOID(record("coordinator.started"));  // nobody has been listened to yet
    return admin_.listen(io_, settled_.admin, *coordinator_);
  }

  // It goes on with the nodes that it knew.
  std::optional<fedge::server::DirectoryOptions> directory() const {
    auto options = settled_.directory;
    if (options) options->node.known_nodes = settled_.data_directory / "directory-nodes";
    return options;
  }

  fedge::server::RunCallbacks callbacks() {
    return {.on_led = [this](const fedge::server::RunRecord& run, const auto& config,
                             const auto& history) -> fedge::Result<void> {
              if (run.number == given_) listening();
              return results_.begin(run, config, history);
            },
            .on_round =
                [this](fedge::server::RunNumber run, const fedge::server::RoundMetrics& metrics) {
                  admin_.add(run, metrics);
                  if (const auto added = results_.add(run, metrics); !added) note(added.error());
                },
            .on_models = [this](fedge::server::RunNumber run,
                                const auto& models) { return results_.finish(run, models); },
            .on_left = [this](fedge::server::RunNumber run, fedge::server::RunStatus status,
                              const std::string& reason) { left(run, status, reason); },
            .on_event = [this](const fedge::Event& event) { admin_.log(event); },
            .on_stopped =
                [this] {
                  admin_.stop();
                  signals_.cancel();
                  signals_.clear();  // from now on a signal ends the program
                }};
  }

  // Once: who goes on with a run says so when it is led.
  void listening() {
    if (!std::exchange(announced_, true))
      announce(options_.ready_fd, fedge::protocol::to_string(coordinator_->address()));
  }

  // With the run that was given on the command line the program ends, unless an operator has only paused it.
  void left(fedge::server::RunNumber run, fedge::server::RunStatus status, const std::string& reason) {
    const bool begun = results_.leads(run);
    results_.forget(run);
    admin_.forget(run);
    if (run != given_ || (begun && status == fedge::server::RunStatus::kPaused)) return;
    ended_ = begun;
    if (!begun) note(fedge::Error{fedge::ErrorCode::kUnavailable, reason});
    coordinator_->stop(begun ? "the run has ended" : "the run cannot be led");
  }

  void note(const std::optional<fedge::Error>& error) {
    if (error && !failure_) failure_ = error;
  }

  fedge::Result<void> record(const char* action) const {
    return fedge::server::AuditLog(settled_.data_directory)
        .append({fedge::server::operator_name(),
                 action,
                 given_ ? "run " + std::to_string(given_->value()) : "all runs",
                 {{"software", fedge::apps::software(kProgram)}}});
  }

  const Options& options_;
  fedge::server::CoordinatorConfig settled_;
  boost::asio::io_context io_;
  fedge::apps::CoordinatorAdmin admin_;
  boost::asio::signal_set signals_;
  fedge::apps::RunResults results_;
  std::optional<fedge::server::RunNumber> given_;  // on the command line
  std::unique_ptr<fedge::server::Coordinator> coordinator_;
  std::optional<fedge::Error> failure_;
  bool announced_ = false;
  bool ended_ = false;
};

int run(const Options& options) {
  const auto settled = settings(options);
  if (!settled) return fedge::apps::report_failure(kProgram, settled.error());
  if (settled->data_directory.empty())
    return wrong_usage("--data-dir is required, or data_directory in the file of --config");
  if (options.run_file.empty() && !options.assignments.empty())
    return wrong_usage("--set changes the run file of --run, which is missing");
  fedge::apps::set_up_logging(kProgram, settled->log_level);
  // A log that nobody reads, or a terminal that is closed, is no reason to end.
  for (const int number : {SIGPIPE, SIGHUP}) std::signal(number, SIG_IGN);
  fedge::raise_open_files_limit();
  return Daemon(options, *settled).run();
}

}  // namespace

int main(int argc, char** argv) {
  fedge::apps::protect_process();
  Options options;
  CLI::App app("The coordinator daemon: enrols clients and leads federated runs to their end.", kProgram);
  app.footer(kExamples);
  app.set_version_flag("--version", fedge::apps::software(kProgram));
  auto* config = app.add_option("--config", options.config_file,
                                "The coordinator's own configuration (TOML): fedge reference coordinator");
  app.add_flag("--check-config", options.check_config, "Only say whether that file is right")->needs(config);
  app.add_option("--data-dir", options.data_directory,
                 "Key, enrolled clients, audit log, runs and chunks; made if absent");
  app.add_option("--listen", options.listen,
                 "Address to listen on; port 0 picks a free one [127.0.0.1:7433]");
  app.add_option(
      "--admin-listen", options.admin_listen,
      "Address for /metrics, /healthz and /readyz; they are open to all who reach it. Default: none");
  auto* run_file =
      app.add_option("--run", options.run_file,
                     "Submit this run file (TOML), or go on with it, and end when the run has ended");
  app.add_option("--set", options.assignments, "Override a key of the run file: section.key=value")
      ->take_all();
  app.add_option("--out", options.out, "Where metrics, model and report of that run go")
      ->capture_default_str()
      ->needs(run_file);
  app.add_option("--threads", options.threads,
                 "Threads of each run for evaluation and aggregation [one a processor]")
      ->check(CLI::Range(1, 1024));
  app.add_option("--ready-fd", options.ready_fd, "Write the address to this file descriptor once listening");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warning, error or off [info]")
      ->check(CLI::IsMember(fedge::server::log_levels()));
  fedge::apps::take_one_value_each(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? fedge::apps::kOk : fedge::apps::kWrongUsage;
  }
  return fedge::apps::run_safely(kProgram,
                                 [&] { return options.check_config ? check_config(options) : run(options); });
}
