// fedge-coordinator: the daemon of an organisation that hosts a federation.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <optional>

#include "apps/common.h"
#include "apps/coordinator_admin.h"
#include "core/platform/thread_pool.h"
#include "server/coordinator/coordinator.h"
#include "server/report/console.h"
#include "server/report/run_output.h"

namespace {

constexpr const char* kProgram = "fedge-coordinator";
constexpr const char* kExamples = R"(
Examples:
  fedge-coordinator --data-dir /var/lib/fedge --listen 0.0.0.0:7433 --run fashion.toml --out results
  fedge token create --data-dir /var/lib/fedge --address fedge.example.org:7433
                                                     then, on a device: fedge-client join TOKEN
)";

struct Options {
  std::string data_directory;
  std::string listen = "127.0.0.1:7433";
  std::string admin_listen;
  std::string run_file;
  std::string out = "fedge-out";
  std::vector<std::string> assignments;
  std::size_t threads = fedge::available_processors();
  std::string log_level = "info";
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

int run(const Options& options) {
  fedge::apps::set_up_logging(kProgram, options.log_level);
  const auto listen = fedge::protocol::parse_address(options.listen);
  if (!listen) return fedge::apps::report_failure(kProgram, listen.error());
  const auto config = load_run(options);
  if (!config) return fedge::apps::report_failure(kProgram, config.error());
  // Opened below, once this is known to be the only coordinator of its data directory and address.
  std::optional<fedge::server::RunOutput> output;
  fedge::server::RoundTable table(stdout, config->rounds);

  boost::asio::io_context io;
  fedge::apps::CoordinatorAdmin admin(options.data_directory);
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  std::optional<fedge::Error> failure;
  bool ended = false;
  const auto note = [&](const fedge::Result<void>& result) {
    if (!result && !failure) failure = result.error();
  };
  auto coordinator = fedge::server::Coordinator::create(
      io,
      {.data_directory = options.data_directory,
       .listen = *listen,
       .threads = options.threads,
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
      *config);
  if (!coordinator) return fedge::apps::report_failure(kProgram, coordinator.error());
  auto opened = fedge::server::RunOutput::create(options.out, *config);
  if (!opened) return fedge::apps::report_failure(kProgram, opened.error());
  output.emplace(std::move(*opened));
  if (const auto listening = admin.listen(io, options.admin_listen, **coordinator); !listening)
    return fedge::apps::report_failure(kProgram, listening.error());
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (!error) (*coordinator)->stop("the coordinator was told to stop");
  });
  const std::string address = fedge::protocol::to_string((*coordinator)->address());
  announce(options.ready_fd, address);
  table.begin(config->name);
  for (const auto& metrics : (*coordinator)->history()) {
    note(output->add(metrics));
    table.add(metrics);
  }
  (*coordinator)->start();
  io.run();
  if (!failure) failure = (*coordinator)->failure();
  if (failure) return fedge::apps::report_failure(kProgram, *failure);
  std::printf("%s", ended ? output->summary().c_str() : "stopped; the same command goes on with the run\n");
  return fedge::apps::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The coordinator daemon: enrols clients and leads a federated run to its end.", kProgram);
  app.footer(kExamples);
  app.set_version_flag("--version", fedge::apps::software(kProgram));
  app.add_option("--data-dir", options.data_directory, "Key, enrolled clients and chunks; made if absent")
      ->required();
  app.add_option("--listen", options.listen, "Address to listen on; port 0 picks a free one")
      ->capture_default_str();
  app.add_option(
      "--admin-listen", options.admin_listen,
      "Address for /metrics, /healthz and /readyz; they are open to all who reach it. Default: none");
  app.add_option("--run", options.run_file, "Run file (TOML)")->required();
  app.add_option("--set", options.assignments, "Override a key of the run file: section.key=value")
      ->take_all();
  app.add_option("--out", options.out, "Where metrics, model and report go")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads for evaluation and aggregation")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--ready-fd", options.ready_fd, "Write the address to this file descriptor once listening");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warning, error or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? fedge::apps::kOk : fedge::apps::kWrongUsage;
  }
  return fedge::apps::run_safely(kProgram, [&] { return run(options); });
}
