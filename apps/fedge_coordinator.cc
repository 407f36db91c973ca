// fedge-coordinator: the daemon of an organisation that hosts a federation.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <optional>

#include "apps/common.h"
#include "apps/coordinator_admin.h"
#include "core/platform/thread_pool.h"
#include "server/audit_log.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator_config.h"
#include "server/report/console.h"
#include "server/report/run_output.h"

namespace {

constexpr const char* kProgram = "fedge-coordinator";
constexpr const char* kExamples = R"(
Examples:
  fedge-coordinator --data-dir /var/lib/fedge --listen 0.0.0.0:7433 --run fashion.toml --out results
  fedge-coordinator --config coordinator.toml --run fashion.toml
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

fedge::Result<fedge::server::RunConfig> load_run(const Options& options) {
  FEDGE_TRY(document, fedge::apps::load_document(options.run_file, options.assignments));
  return fedge::server::read_run_config(document);
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

fedge::Result<void> record(const std::filesystem::path& data_directory, const char* action,
                           const fedge::server::RunConfig& run) {
  char id[17];
  std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(run.id.value()));
  return fedge::server::AuditLog(data_directory)
      .append({fedge::server::operator_name(),
               action,
               "run " + run.name,
               {{"run_id", id}, {"software", fedge::apps::software(kProgram)}}});
}

int lead(const Options& options, const fedge::server::CoordinatorConfig& settled,
         const fedge::server::RunConfig& config) {
  // Opened below, once this is known to be the only coordinator of its data directory and address.
  std::optional<fedge::server::RunOutput> output;
  fedge::server::RoundTable table(stdout, config.rounds);

  boost::asio::io_context io;
  fedge::apps::CoordinatorAdmin admin(settled.data_directory);
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  std::optional<fedge::Error> failure;
  bool ended = false;
  const auto note = [&](const fedge::Result<void>& result) {
    if (!result && !failure) failure = result.error();
  };
  auto coordinator = fedge::server::Coordinator::create(
      io,
      {.data_directory = settled.data_directory,
       .listen = settled.listen,
       .connections = settled.connections,
       .joining = settled.joining,
       .threads = settled.threads,
       .software = fedge::apps::software(kProgram),
       .on_round =
           [&](const fedge::server::RoundMetrics& metrics) {
             admin.add(metrics);
             note(output->add(metrics));
             table.add(metrics);
           },
       .on_event = [&](const fedge::Event& event) { admin.log(event); },
       .on_finished = [&](const std::vector<fedge::server::FinalModel>& models) -> fedge::Result<void> {
         table.finish();
         ended = true;
         return output->finish(models);
       },
       .on_stopped =
           [&] {
             admin.stop();
             signals.cancel();
             signals.clear();  // from now on a signal ends the program
           }},
      config);
  if (!coordinator) return fedge::apps::report_failure(kProgram, coordinator.error());
  // Nobody has been listened to yet.
  if (const auto recorded = record(settled.data_directory, "coordinator.started", config); !recorded)
    return fedge::apps::report_failure(kProgram, recorded.error());
  auto opened = fedge::server::RunOutput::create(options.out, config);
  if (!opened) return fedge::apps::report_failure(kProgram, opened.error());
  output.emplace(std::move(*opened));
  if (const auto listening = admin.listen(io, settled.admin, **coordinator); !listening)
    return fedge::apps::report_failure(kProgram, listening.error());
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (!error) (*coordinator)->stop("the coordinator was told to stop");
  });
  const std::string address = fedge::protocol::to_string((*coordinator)->address());
  announce(options.ready_fd, address);
  table.begin(config.name);
  for (const auto& metrics : (*coordinator)->history()) {
    note(output->add(metrics));
    table.add(metrics);
  }
  (*coordinator)->start();
  io.run();
  if (!failure) failure = (*coordinator)->failure();
  note(record(settled.data_directory, "coordinator.stopped", config));
  if (failure) return fedge::apps::report_failure(kProgram, *failure);
  std::printf("%s", ended ? output->summary().c_str() : "stopped; the same command goes on with the run\n");
  return fedge::apps::kOk;
}

int run(const Options& options) {
  const auto settled = settings(options);
  if (!settled) return fedge::apps::report_failure(kProgram, settled.error());
  if (settled->data_directory.empty())
    return wrong_usage("--data-dir is required, or data_directory in the file of --config");
  if (options.run_file.empty()) return wrong_usage("--run is required");
  fedge::apps::set_up_logging(kProgram, settled->log_level);
  // A log that nobody reads, or a terminal that is closed, is no reason to end.
  for (const int number : {SIGPIPE, SIGHUP}) std::signal(number, SIG_IGN);
  const auto config = load_run(options);
  if (!config) return fedge::apps::report_failure(kProgram, config.error());
  return lead(options, *settled, *config);
}

}  // namespace

int main(int argc, char** argv) {
  fedge::apps::protect_process();
  Options options;
  CLI::App app("The coordinator daemon: enrols clients and leads a federated run to its end.", kProgram);
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
  app.add_option("--run", options.run_file, "Run file (TOML)");
  app.add_option("--set", options.assignments, "Override a key of the run file: section.key=value")
      ->take_all();
  app.add_option("--out", options.out, "Where metrics, model and report go")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads for evaluation and aggregation [one a processor]")
      ->check(CLI::Range(1, 1024));
  app.add_option("--ready-fd", options.ready_fd, "Write the address to this file descriptor once listening");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warning, error or off [info]")
      ->check(CLI::IsMember(fedge::server::log_levels()));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? fedge::apps::kOk : fedge::apps::kWrongUsage;
  }
  return fedge::apps::run_safely(kProgram,
                                 [&] { return options.check_config ? check_config(options) : run(options); });
}
