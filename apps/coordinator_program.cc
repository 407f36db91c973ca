#include "apps/coordinator_program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/command_line.h"
#include "apps/cli/validators.h"
#include "apps/common.h"
#include "apps/coordinator_admin.h"
#include "apps/coordinator_settings.h"
#include "apps/run_results.h"
#include "core/platform/files.h"
#include "protocol/session/loop.h"
#include "server/api/verifier.h"
#include "server/audit_log.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator_config.h"
#include "server/report/results_place.h"

namespace {

using Options = fedge::apps::CoordinatorProgramOptions;

constexpr const char* kSoftware = "fedge-coordinator";

// Writes the address as one line to the descriptor that a supervisor passed.
void announce(const std::string& program, int fd, const std::string& address) {
  if (fd < 0) return;
  const std::string line = address + "\n";
  if (::write(fd, line.data(), line.size()) < 0) std::perror((program + ": --ready-fd").c_str());
  ::close(fd);
}

// The daemon and the receivers of its callbacks; lives until the process ends.
class Daemon {
 public:
  Daemon(const Options& options, fedge::server::CoordinatorConfig settled)
      : options_(options),
        settled_(std::move(settled)),
        admin_(settled_.data_directory),
        signals_(io_, SIGINT, SIGTERM),
        results_(settled_.data_directory, [this](const fedge::Event& event) { admin_.log(event); }) {}

  int run() {
    if (const auto ready = set_up(); !ready)
      return fedge::apps::report_failure(options_.program, ready.error());
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) coordinator_->stop("the coordinator was told to stop");
    });
    if (!given_) listening();
    coordinator_->start();
    io_.run();
    note(coordinator_->failure());
    if (const auto recorded = record("coordinator.stopped"); !recorded) note(recorded.error());
    if (failure_) return fedge::apps::report_failure(options_.program, *failure_);
    const bool supervised = options_.ready_fd >= 0;  // by a program that knows how to continue
    if (ended_)
      std::printf("%s", results_.summary().c_str());
    else if (!supervised)
      report_stop();
    std::fflush(stdout);
    return untrained_ ? fedge::apps::report_failure(options_.program, *untrained_) : fedge::apps::kOk;
  }

 private:
  fedge::Result<void> set_up() {
    std::optional<fedge::run::RunConfig> config;
    if (!options_.run_file.empty()) {
      FEDGE_TRY(document, fedge::apps::load_document(options_.run_file, options_.assignments));
      FEDGE_TRY(loaded, fedge::run::read_run_config(document));
      for (const std::string& note : loaded.notes)
        admin_.log(fedge::Event{fedge::Severity::kWarning, "run.adjusted", {}}.with("reason", note));
      config = std::move(loaded);
    }
    FEDGE_TRY(coordinator, fedge::server::Coordinator::create(
                               io_,
                               {.data_directory = settled_.data_directory,
                                .listen = settled_.listen,
                                .addresses = settled_.addresses,
                                .connections = settled_.connections,
                                .joining = settled_.joining,
                                .lock_patience = std::chrono::seconds(10),
                                .runs_at_once = settled_.runs_at_once,
                                .threads = settled_.threads,
                                .wait_limit = fedge::seconds(settled_.wait_limit_hours * 3600),
                                .audit_rotate = settled_.audit_rotate,
                                .upload_limit = fedge::apps::bytes_per_second(settled_.swarm_upload_mbit),
                                .software = fedge::apps::software(kSoftware),
                                .directory = directory(),
                                .traces = settled_.traces},
                               callbacks()));
    coordinator_ = std::move(coordinator);
    if (config) {
      FEDGE_TRY(going_on, fedge::apps::run_going_on(settled_.data_directory, *config));
      std::filesystem::path results = options_.out.value_or("");
      if (!options_.out_is_claimed) {
        FEDGE_TRY(claim, fedge::server::choose_results({options_.out, options_.force, std::move(going_on)}));
        results = claim.directory();
        claim_ = std::move(claim);
      }
      FEDGE_TRY(submitted, coordinator_->submit(*config));
      given_ = submitted.number;
      results_.show(submitted.number, results);
    }
    FEDGE_TRY(provider, admin_.identity_provider(io_, settled_.api.oidc));
    FEDGE_TRY_VOID(record("coordinator.started"));  // before any client is served
    FEDGE_TRY_VOID(admin_.serve_api(
        {.parts = {settled_.data_directory, fedge::apps::software(kSoftware), settled_.api.directories,
                   coordinator_->live(), verifier(), settled_.keep_days, provider},
         .listen = settled_.api.listen,
         .certificate = settled_.api.certificate,
         .key = settled_.api.key,
         .report = [this](const fedge::Event& event) { log_later(event); },
         .hosts = settled_.api.hosts}));
    return admin_.listen(io_, settled_.admin, *coordinator_);
  }

  // Replays are done by fedge-sim, which is installed beside this program.
  std::shared_ptr<fedge::server::Verifier> verifier() const {
    const auto program = fedge::apps::own_program().parent_path() / "fedge-sim";
    return std::make_shared<fedge::server::Verifier>(settled_.data_directory, program);
  }

  // From any thread.
  void log_later(const fedge::Event& event) {
    fedge::protocol::post(io_, [this, event] { admin_.log(event); });
  }

  // Adds the file of nodes known in an earlier process.
  std::optional<fedge::server::DirectoryOptions> directory() const {
    auto options = settled_.directory;
    if (options) options->node.known_nodes = settled_.data_directory / "directory-nodes";
    return options;
  }

  fedge::server::RunCallbacks callbacks() {
    return {.on_led = [this](const fedge::server::RunRecord& run, const auto& config,
                             const auto& history) -> fedge::Result<void> {
              if (run.number == given_) listening();
              admin_.resume(run.number, history);
              return results_.begin(run, config, history);
            },
            .on_round =
                [this](fedge::server::RunNumber run, const fedge::server::RoundMetrics& metrics) {
                  admin_.add(run, metrics);
                  if (const auto added = results_.add(run, metrics); !added) note(added.error());
                },
            .on_kept = [this](fedge::server::RunNumber run, fedge::RoundNumber round,
                              const auto& models) { return results_.keep(run, round, models); },
            .on_models = [this](fedge::server::RunNumber run, const auto& models, const std::string& failure)
                -> fedge::Result<void> { return results_.finish(run, models, failure); },
            .on_left = [this](fedge::server::RunNumber run, fedge::server::RunStatus status,
                              const std::string& reason) { left(run, status, reason); },
            .on_event = [this](const fedge::Event& event) { admin_.log(event); },
            .on_stopped =
                [this] {
                  admin_.stop();
                  signals_.cancel();
                  signals_.clear();  // a second signal ends the program
                }};
  }

  // Announces the address once: with --run, when that run is executed.
  void listening() {
    if (std::exchange(announced_, true)) return;
    const std::string address = fedge::protocol::to_string(coordinator_->address());
    admin_.log(fedge::Event{fedge::Severity::kInfo, "coordinator.listening", {}}.with("address", address));
    announce(options_.program, options_.ready_fd, address);
  }

  // Ends the program with the run of --run, unless an operator has only paused that run.
  void left(fedge::server::RunNumber run, fedge::server::RunStatus status, const std::string& reason) {
    const bool begun = results_.leads(run);
    results_.forget(run);
    admin_.forget(run);
    if (run != given_ || (begun && status == fedge::server::RunStatus::kPaused)) return;
    ended_ = begun;
    if (begun && status == fedge::server::RunStatus::kFailed)
      untrained_ = fedge::Error{fedge::ErrorCode::kUnavailable, reason};
    if (!begun) note(fedge::Error{fedge::ErrorCode::kUnavailable, reason});
    coordinator_->stop(begun ? "the run has ended" : "the run cannot be executed");
  }

  void report_stop() const {
    const auto open = fedge::apps::would_continue(settled_.data_directory, given_);
    if (open && *open)
      std::printf("stopped; the same command continues the %s\n", given_ ? "run" : "runs");
    else
      std::printf("stopped\n");
  }

  void note(const std::optional<fedge::Error>& error) {
    if (error && !failure_) failure_ = error;
  }

  fedge::Result<void> record(const char* action) const {
    return fedge::server::AuditLog(settled_.data_directory)
        .append({fedge::server::operator_name(),
                 action,
                 given_ ? "run " + std::to_string(given_->value()) : "all runs",
                 {{"software", fedge::apps::software(kSoftware)}}});
  }

  const Options& options_;
  fedge::server::CoordinatorConfig settled_;
  boost::asio::io_context io_;
  fedge::apps::CoordinatorAdmin admin_;
  boost::asio::signal_set signals_;
  fedge::apps::RunResults results_;
  std::optional<fedge::server::RunNumber> given_;  // the run of --run
  std::unique_ptr<fedge::server::Coordinator> coordinator_;
  std::optional<fedge::server::ResultsClaim> claim_;  // of the results of --run
  std::optional<fedge::Error> failure_;
  std::optional<fedge::Error> untrained_;  // why the ended run's model is unusable
  bool announced_ = false;
  bool ended_ = false;
};

void add_options(CLI::App& app, Options& options) {
  auto* config = app.add_option("--config", options.config_file,
                                "Configuration file (TOML); 'fedge reference coordinator' lists its keys")
                     ->type_name("FILE");
  app.add_flag("--check-config", options.check_config,
               "Check the configuration file and the paths in it, and exit")
      ->needs(config);
  app.add_option("--data-dir", options.data_directory,
                 "Directory of the key, clients, runs and audit log; created if it does not exist; required "
                 "unless the configuration file has data_directory, or FEDGE_DATA_DIR is set")
      ->type_name("DIR");
  app.add_option("--listen", options.listen, "Address to listen on; port 0 picks a free port")
      ->type_name("HOST:PORT")
      ->default_str("127.0.0.1:7433")
      ->check(fedge::apps::network_address());
  app.add_option("--admin-listen", options.admin_listen,
                 "Address for /metrics, /healthz and /readyz, without access control; default: none")
      ->type_name("HOST:PORT")
      ->check(fedge::apps::network_address());
  app.add_option("--api-listen", options.api_listen,
                 "Address for the admin API over HTTPS; default: only on this machine, through the Unix "
                 "socket admin.sock in the data directory")
      ->type_name("HOST:PORT")
      ->check(fedge::apps::network_address());
  auto* run_file =
      app.add_option("--run", options.run_file,
                     "Submit this run file (TOML), or continue its run, and exit when the run has ended")
          ->type_name("FILE");
  fedge::apps::add_assignments(app, options.assignments);
  app.add_option(
         "--out", options.out,
         "Directory for metrics, model and report of the run of --run; default: fedge-out, or the first of "
         "fedge-out-2, fedge-out-3, ... without results of another run")
      ->type_name("DIR")
      ->needs(run_file);
  app.add_flag("--force", options.force,
               "Overwrite the results of another run that are in --out; not needed to continue a run")
      ->needs(run_file);
  app.add_flag("--out-is-claimed", options.out_is_claimed,
               "The program that started this one has claimed --out and checked its contents")
      ->needs("--out")
      ->group("");  // not for users
  app.add_option("--threads", options.threads, "Threads of each run for evaluation and aggregation")
      ->default_str("number of processors")
      ->check(fedge::apps::between(1, 1024));
  app.add_option("--ready-fd", options.ready_fd, "Write the address to this file descriptor when listening")
      ->type_name("FD");
  app.add_option("--log-level", options.log_level, "Least severe level that is logged")
      ->type_name("LEVEL")
      ->default_str("info")
      ->check(fedge::apps::one_of(fedge::server::log_levels()));
  app.add_option("--log-format", options.log_format,
                 "Form of the log's lines; json: one object for each event")
      ->type_name("FORMAT")
      ->default_str("text")
      ->check(fedge::apps::one_of(fedge::apps::log_formats()));
}

int run_daemon(const Options& options) {
  const auto settled = fedge::apps::coordinator_settings(options);
  if (!settled) return fedge::apps::report_failure(options.program, settled.error());
  if (settled->data_directory.empty())
    return fedge::apps::report_wrong_usage(options.program,
                                           "the data directory is missing: give --data-dir DIR or "
                                           "data_directory in the file of --config, or set "
                                           "FEDGE_DATA_DIR");
  if (options.run_file.empty() && !options.assignments.empty())
    return fedge::apps::report_wrong_usage(options.program,
                                           "--set overrides keys of a run file: give --run FILE too");
  fedge::apps::set_up_logging(options.program, settled->log_level, settled->log_format);
  // Keep running when the log's reader exits or the terminal is closed.
  for (const int number : {SIGPIPE, SIGHUP}) std::signal(number, SIG_IGN);
  fedge::raise_open_files_limit();
  return Daemon(options, *settled).run();
}

}  // namespace

int fedge::apps::coordinator_main(int argc, char** argv) {
  return coordinator_main_as(program_name(argv, kSoftware), argc, argv);
}

int fedge::apps::coordinator_main_as(const std::string& program, int argc, char** argv) {
  fedge::apps::protect_process();
  Options options{.program = program};
  CLI::App app("", program);
  const std::string version = fedge::apps::software(kSoftware);
  app.set_version_flag("--version", program == kSoftware ? version : program + " (" + version + ")");
  add_options(app, options);
  if (const auto code = fedge::apps::parse_command_line(app, renamed(coordinator_doc(), program), argc, argv))
    return *code;
  return fedge::apps::run_safely(program, [&] {
    return options.check_config ? fedge::apps::check_coordinator_config(options) : run_daemon(options);
  });
}
