// fedge-client: the daemon of an edge device.
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "apps/client_health.h"
#include "apps/common.h"
#include "client/daemon.h"
#include "core/platform/files.h"
#include "protocol/join_token.h"

namespace {

constexpr const char* kProgram = "fedge-client";
constexpr const char* kExamples = R"(
Examples:
  fedge-client join fedge1.AbCd...             become a client of the coordinator that made the token
  fedge-client run                             stay connected and train when asked, for ever
  fedge-client run --token fedge1.AbCd...      the same in one step, for containers
  fedge-client status                          who this client is, and what its daemon is doing
  fedge-client doctor                          what keeps it from taking part, checked one by one
)";

struct Options {
  std::string state_directory;
  std::string log_level = "info";
  std::string token;
  double capability = 1;
  bool once = false;
  std::size_t cache_mb = 1024;
  std::string format = "table";
};

std::string default_state_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::string(state) + "/fedge-client";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.local/state/fedge-client";
  return "fedge-client-state";
}

fedge::Result<fedge::client::Membership> redeem(const Options& options) {
  FEDGE_TRY(token, fedge::protocol::parse_join_token(options.token));
  boost::asio::io_context io;
  return fedge::client::join(io, options.state_directory, token, fedge::apps::software(kProgram));
}

int join(const Options& options) {
  const auto membership = redeem(options);
  if (!membership) return fedge::apps::report_failure(kProgram, membership.error());
  std::printf("joined %s as client %u; now run: fedge-client run\n",
              fedge::protocol::to_string(membership->coordinators.front()).c_str(),
              membership->client.value());
  return fedge::apps::kOk;
}

int run(const Options& options) {
  fedge::apps::set_up_logging(kProgram, options.log_level);
  std::signal(SIGPIPE, SIG_IGN);  // a log that nobody reads is no reason to end
  if (!options.token.empty() && !fedge::client::read_membership(options.state_directory))
    if (const auto joined = redeem(options); !joined)
      return fedge::apps::report_failure(kProgram, joined.error());
  boost::asio::io_context io;
  auto daemon = fedge::client::Daemon::create(io, {.state_directory = options.state_directory,
                                                   .software = fedge::apps::software(kProgram),
                                                   .backoff = {},
                                                   .capability = options.capability,
                                                   .cache_bytes = options.cache_mb << 20,
                                                   .stop_after_run = options.once,
                                                   .on_event = fedge::apps::log_event});
  if (!daemon) return fedge::apps::report_failure(kProgram, daemon.error());
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (!error) (*daemon)->stop();
  });
  (*daemon)->on_finished([&] {
    signals.cancel();
    signals.clear();  // from now on a signal ends the program
  });
  (*daemon)->start();
  io.run();
  if (const auto& failure = (*daemon)->failure()) return fedge::apps::report_failure(kProgram, *failure);
  return fedge::apps::kOk;
}

fedge::apps::HealthOptions health(const Options& options) {
  return {.state_directory = options.state_directory,
          .cache_bytes = options.cache_mb << 20,
          .json = options.format == "json"};
}

void add_cache_option(CLI::App& command, Options& options) {
  command
      .add_option("--cache-mb", options.cache_mb,
                  "Largest size of models and updates kept on disk; at least the largest model's")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24));
}

}  // namespace

int main(int argc, char** argv) {
  Options options{.state_directory = default_state_directory()};
  CLI::App app("The client daemon: trains models on this device for a coordinator it has joined.", kProgram);
  app.footer(kExamples);
  app.set_version_flag("--version", fedge::apps::software(kProgram));
  app.require_subcommand(1);
  app.add_option("--state-dir", options.state_directory, "Where key and membership are kept")
      ->capture_default_str();
  app.add_option("--log-level", options.log_level, "trace, debug, info, warning, error or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  auto* join_command = app.add_subcommand("join", "Become a client of a coordinator");
  join_command->add_option("token", options.token, "Join token made by: fedge token create")->required();
  auto* run_command = app.add_subcommand("run", "Stay connected and train when asked");
  run_command->add_option("--token", options.token, "Join with this token first, unless already a member");
  run_command
      ->add_option("--capability", options.capability,
                   "Share of a model that this device can train, for strategies that leave it to the client")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1.0));
  run_command->add_flag("--once", options.once, "End when the coordinator's run ends");
  auto* status_command = app.add_subcommand("status", "Show who this client is and what its daemon is doing");
  auto* doctor_command = app.add_subcommand("doctor", "Check what may keep this client from taking part");
  add_cache_option(*run_command, options);
  add_cache_option(*doctor_command, options);
  for (auto* command : {status_command, doctor_command})
    command->add_option("--format", options.format, "table or json")
        ->capture_default_str()
        ->check(CLI::IsMember({"table", "json"}));
  for (auto* command : {join_command, run_command, status_command, doctor_command}) command->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? fedge::apps::kOk : fedge::apps::kWrongUsage;
  }
  return fedge::apps::run_safely(kProgram, [&] {
    if (*join_command) return join(options);
    if (*run_command) return run(options);
    return *doctor_command ? fedge::apps::client_doctor(kProgram, health(options))
                           : fedge::apps::client_status(kProgram, health(options));
  });
}
