#include "apps/client_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

namespace fedge::apps {
namespace {

void add_trainer_options(CLI::App& run, ClientOptions& options) {
  run.add_option("--trainer", options.trainer,
                 "Program and arguments that train instead of the built-in trainer; split as a shell does, "
                 "without variables and patterns");
  run.add_option("--trainer-memory-mb", options.trainer_memory_mb,
                 "Private memory that the trainer may use, in MiB; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  run.add_option("--trainer-timeout", options.trainer_timeout_seconds,
                 "Seconds without a sign of life after which the trainer counts as hung and is killed")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 1e6));
  run.add_option("--trainer-nice", options.trainer_nice,
                 "Nice value of the trainer: how far it yields to other programs")
      ->capture_default_str()
      ->check(CLI::Range(0, 19));
}

void add_swarm_options(CLI::App& run, ClientOptions& options) {
  run.add_option(
         "--peer-listen", options.peer_listen,
         "Address where other clients may connect, in runs whose clients exchange models; without it this "
         "client connects to others, and they do not connect to it")
      ->type_name("IP:PORT");
  run.add_option(
         "--peer-announce", options.peer_announce,
         "Port where other clients are told to connect, if it is not that of --peer-listen; HOST, if given, "
         "must be the address that the coordinator sees")
      ->type_name("[HOST]:PORT");
  run.add_option("--upload-mbit", options.upload_mbit,
                 "Upload rate to other clients, in Mbit/s of 10^6 bits; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
}

void add_directory_options(CLI::App& command, ClientOptions& options) {
  command
      .add_option("--bootstrap", options.bootstrap,
                  "A node of the directory: the coordinator is looked up there; may be repeated")
      ->type_name("HOST:PORT");
  command
      .add_option("--directory-listen", options.directory_listen,
                  "Where this client's own node of the directory listens (UDP)")
      ->type_name("IP:PORT")
      ->capture_default_str();
  command.add_option("--run", options.run_name,
                     "Without a token: join the coordinator that announces a run of this name");
  command.add_option(
      "--coordinator", options.coordinator,
      "The coordinator's key (hexadecimal): no other is trusted; without a token it is looked up by it");
}

// What this device insists on, whatever a run says.
void add_privacy_options(CLI::App& run, ClientOptions& options) {
  run.add_flag(
      "--only-secure", options.only_secure,
      "Take part only in runs with secure aggregation: the coordinator sees sums of updates, no single one");
  run.add_option("--min-clients", options.min_clients,
                 "Help to reveal no sum of fewer clients' updates than this, whatever the run says")
      ->check(CLI::Range(2, 65'536));
  run.add_option(
         "--corrupt", options.corrupt,
         "Share of a sum's clients that may be in league with the coordinator: help to reveal no sum whose "
         "masks are not secure against so many, whatever the run says")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.33));
  run.add_option("--max-epsilon", options.max_epsilon,
                 "Take part only in runs where this client adds noise to its own updates (local differential "
                 "privacy), and only while all that it has sent stays within this epsilon")
      ->type_name("EPSILON")
      ->check(CLI::Range(1e-3, 1e6));
  run.add_option(
         "--require-noise", options.require_noise,
         "Take part only in runs where noise of the clients keeps all that this client has sent under noise "
         "within this epsilon; the noise is its own, or that of the honest clients of each sum")
      ->type_name("EPSILON")
      ->check(CLI::Range(1e-3, 1e6));
  run.add_option(
         "--max-updates-per-day", options.max_updates_per_day,
         "Most updates that this client makes in a day, of all runs together; it refuses further tasks "
         "until the next day (UTC)")
      ->check(CLI::Range(1, 1'000'000));
  run.add_option(
         "--max-delta", options.max_delta,
         "Delta for --max-epsilon and --require-noise: the probability that updates reveal more than that, "
         "whatever delta a run has")
      ->capture_default_str()
      ->type_name("DELTA")
      ->check(CLI::Range(1e-15, 0.1));
}

void add_cache_option(CLI::App& command, ClientOptions& options) {
  command
      .add_option("--cache-mb", options.cache_mb,
                  "Largest size of models and updates kept on disk; at least the largest model's")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24));
}

}  // namespace

std::string default_client_state() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::string(state) + "/fedge-client";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.local/state/fedge-client";
  return "fedge-client-state";
}

ClientCommands add_client_commands(CLI::App& app, ClientOptions& options) {
  app.add_option("--state-dir", options.state_directory, "Where key and membership are kept")
      ->capture_default_str();
  app.add_option("--log-level", options.log_level, "trace, debug, info, warning, error or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  auto* join_command = app.add_subcommand("join", "Become a client of a coordinator");
  auto* token = join_command->add_option(
      "token", options.token,
      "Join token made by: fedge token create. Other users may see it while it is read: a file is safer");
  auto* run_command = app.add_subcommand("run", "Stay connected and train when asked");
  auto* run_token = run_command->add_option(
      "--token", options.token,
      "Join with this token first, unless already a member. Other users may see it: a file is safer");
  for (auto [command, other] : {std::pair(join_command, token), std::pair(run_command, run_token)})
    command
        ->add_option("--token-file", options.token_file, "The file with the token, or - for standard input")
        ->excludes(other);
  run_command
      ->add_option("--capability", options.capability,
                   "Share of a model that this device can train, for strategies that leave it to the client")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1.0));
  run_command
      ->add_option("--data-directory", options.data_directories,
                   "Where data sets lie on this device, NAME=DIR for one of them [where their packages put "
                   "them]; the data set \"text\" needs it")
      ->type_name("[NAME=]DIR");
  run_command->add_flag("--once", options.once, "End when a run has ended and no other is left");
  add_privacy_options(*run_command, options);
  run_command
      ->add_option(
          "--withhold", options.withheld,
          "Values that this device leaves out of its published records, whoever asks: latency, freshness, "
          "utility, availability, labels")
      ->delimiter(',');
  add_trainer_options(*run_command, options);
  add_swarm_options(*run_command, options);
  for (auto* command : {join_command, run_command}) add_directory_options(*command, options);
  auto* key_command = app.add_subcommand("key", "Print this device's public key, made if there is none");
  auto* status_command = app.add_subcommand("status", "Show who this client is and what its daemon is doing");
  auto* doctor_command = app.add_subcommand("doctor", "Check what may keep this client from taking part");
  add_cache_option(*run_command, options);
  add_cache_option(*doctor_command, options);
  for (auto* command : {status_command, doctor_command})
    command->add_option("--format", options.format, "table or json")
        ->capture_default_str()
        ->check(CLI::IsMember({"table", "json"}));
  for (auto* command : {join_command, run_command, status_command, doctor_command, key_command})
    command->fallthrough();
  return {join_command, run_command, key_command, status_command, doctor_command};
}

}  // namespace fedge::apps
