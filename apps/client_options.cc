#include "apps/client_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "apps/cli/validators.h"
#include "protocol/limits.h"

namespace fedge::apps {
namespace {

void add_swarm_options(CLI::App& run, ClientOptions& options) {
  run.add_option("--peer-listen", options.peer_listen,
                 "Address to which other clients can connect, for runs whose clients exchange models; "
                 "default: open connections, but accept none")
      ->type_name("IP:PORT")
      ->check(network_address());
  run.add_option(
         "--peer-announce", options.peer_announce,
         "Address that the coordinator gives to other clients, if its port differs from --peer-listen; HOST, "
         "if given, must be the address from which the coordinator sees this client connect")
      ->type_name("[HOST]:PORT");
  run.add_option("--upload-mbit", options.upload_mbit,
                 "Limit on uploads to other clients, in Mbit/s (10^6 bits); 0: no limit")
      ->type_name("MBIT")
      ->capture_default_str()
      ->check(between(0, 1e6));
}

void add_directory_options(CLI::App& command, ClientOptions& options) {
  command
      .add_option("--bootstrap", options.bootstrap,
                  "A node of the distributed directory (DHT); this client finds the coordinator's "
                  "address there")
      ->type_name("HOST:PORT")
      ->check(network_address());
  command
      .add_option("--directory-listen", options.directory_listen,
                  "UDP address of this client's own node of the distributed directory (DHT)")
      ->type_name("IP:PORT")
      ->capture_default_str()
      ->check(network_address());
  command
      .add_option("--run", options.run_name,
                  "Without a token: join the coordinator that announces a run of this name in the directory")
      ->type_name("NAME");
  command
      .add_option("--coordinator", options.coordinator,
                  "Public key (hexadecimal) of the only coordinator to trust; without a token, the client "
                  "looks up this key in the directory to find the coordinator's address")
      ->type_name("KEY");
}

// The limits of this device, which apply whatever a run asks for.
void add_privacy_options(CLI::App& run, ClientOptions& options) {
  const char* group = "Privacy limits of this device";
  run.add_flag("--only-secure", options.only_secure,
               "Take part only in runs with secure aggregation, in which the coordinator sees only sums of "
               "updates")
      ->group(group);
  run.add_flag(
         "--allow-split", options.splits,
         "Also take part in runs of split training, in which the coordinator trains a part of the model and "
         "sees activations, from which samples of this client can be reconstructed")
      ->group(group);
  run.add_option("--min-clients", options.min_clients,
                 "Help to unmask a sum only if it contains the updates of at least this many clients")
      ->check(between(2, 65'536))
      ->group(group);
  run.add_option("--corrupt", options.corrupt,
                 "Help to unmask a sum only if its masks stay secure when this fraction of its clients "
                 "colludes with the coordinator")
      ->type_name("FRACTION")
      ->capture_default_str()
      ->check(between(0, 0.33))
      ->group(group);
  run.add_option("--max-epsilon", options.max_epsilon,
                 "Take part only in runs with local differential privacy, and only while the epsilon of all "
                 "updates of this client together is at most this")
      ->type_name("EPSILON")
      ->check(between(1e-3, 1e6))
      ->group(group);
  run.add_option("--require-noise", options.require_noise,
                 "Take part only in runs whose clients add noise, and only while the epsilon of all updates "
                 "of this client together is at most this; the noise that other honest clients add to the "
                 "same sum lowers that epsilon")
      ->type_name("EPSILON")
      ->check(between(1e-3, 1e6))
      ->group(group);
  run.add_option(
         "--max-delta", options.max_delta,
         "Delta at which --max-epsilon and --require-noise apply; the delta of a run file does not change it")
      ->capture_default_str()
      ->type_name("DELTA")
      ->check(between(1e-15, 0.1))
      ->group(group);
  run.add_option("--max-updates-per-day", options.max_updates_per_day,
                 "Refuse tasks after this many updates on one day (UTC), counted over all runs")
      ->check(between(1, 1'000'000))
      ->group(group);
  run.add_option(
         "--withhold", options.withheld,
         "Values to leave out of this device's published status records: latency, freshness, utility, "
         "availability, labels, battery")
      ->type_name("VALUE,...")
      ->delimiter(',')
      ->group(group);
}

// Sensors whose events become own data.
void add_stream_options(CLI::App& run, ClientOptions& options) {
  const char* group = "Streams of sensors";
  auto* stream =
      run.add_option("--stream", options.streams,
                     "Screen the stream of a sensor for events, and keep the segments around them as this "
                     "device's data for runs that name it NAME; PATH is a FIFO, a device, a file, or - for "
                     "standard input")
          ->type_name("NAME=PATH")
          ->group(group);
  run.add_option("--screening", options.screening,
                 "TOML file with the rules of the screening; with NAME=, of this stream alone")
      ->type_name("[NAME=]FILE")
      ->needs(stream)
      ->group(group);
  run.add_option("--stream-mb", options.stream_mb,
                 "Disk space for each stream's segments, in MiB; the oldest are removed")
      ->type_name("MIB")
      ->capture_default_str()
      ->check(between(1, 1 << 24))
      ->group(group);
  run.add_option("--stream-test", options.stream_test,
                 "Fraction of a stream's events that are for testing, if the run splits by file")
      ->type_name("FRACTION")
      ->capture_default_str()
      ->check(between(0, 1))
      ->group(group);
  stream->excludes("--trainer");
}

void add_cache_option(CLI::App& command, ClientOptions& options) {
  command
      .add_option("--cache-mb", options.cache_mb,
                  "Disk space for models and updates, in MiB; the largest model must fit")
      ->type_name("MIB")
      ->capture_default_str()
      ->check(between(1, 1 << 24));
}

void add_token_options(CLI::App& join, CLI::App& run, ClientOptions& options) {
  auto* token =
      join.add_option("TOKEN", options.token,
                      "Join token; other users may see it in the process list, so --token-file is safer");
  auto* join_token = join.add_option("--token", options.token, "The same as TOKEN, as in fedge-client run")
                         ->type_name("TOKEN")
                         ->excludes(token);
  auto* run_token =
      run.add_option("--token", options.token,
                     "Join with this token unless this device has joined already; other users may "
                     "see it in the process list, so --token-file is safer")
          ->type_name("TOKEN");
  for (auto* command : {&join, &run})
    command->add_option("--token-file", options.token_file, "File with the token; -: standard input")
        ->type_name("FILE")
        ->excludes(command == &join ? join_token : run_token);
  join.get_option("--token-file")->excludes(token);
}

void add_move_options(CLI::App& move, ClientOptions& options) {
  move.add_option("ADDRESS", options.addresses,
                  "Address HOST:PORT of the coordinator; up to 4, in the order to try; default: those that "
                  "the client has")
      ->check(network_address())
      ->expected(0, static_cast<int>(protocol::kMaxCoordinatorAddresses));
  move.add_option("--key", options.coordinator,
                  "Public key (hexadecimal) that the coordinator has now; ask its operator, who sees it with "
                  "'fedge key show'")
      ->type_name("KEY");
  move.add_flag("--unchecked", options.unchecked,
                "Do not connect first, for example because the coordinator is not at the address yet");
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
  app.add_option("--state-dir", options.state_directory, "Directory of this client's key and membership")
      ->type_name("DIR")
      ->default_str("~/.local/state/fedge-client or $XDG_STATE_HOME/fedge-client");
  add_log_level(app, options.log_level);
  add_log_format(app, options.log_format);
  app.set_config("--config", "",
                 "File with options: a TOML section for each command, such as [run] with data = "
                 "[\"NAME=PATH\"]; the command line takes precedence")
      ->type_name("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
  auto* join_command = app.add_subcommand("join");
  auto* run_command = app.add_subcommand("run");
  add_token_options(*join_command, *run_command, options);
  run_command
      ->add_option(
          "--capability", options.capability,
          "Fraction of a model that this device can train, for strategies that let the client decide")
      ->type_name("FRACTION")
      ->capture_default_str()
      ->check(between(0.001, 1));
  run_command
      ->add_option("--power", options.power_file,
                   "TOML file that describes the energy of this device's work, for runs that plan it")
      ->type_name("FILE");
  run_command->add_flag("--measure-energy", options.measure_energy,
                        "Measure the energy of training, by the processor's counters (RAPL) or the battery, "
                        "and report it with each update");
  run_command
      ->add_option(
          "--data,--data-directory", options.data_directories,
          "Path of this device's data for runs that name it NAME, a file or a directory; only with it "
          "does the device take part in runs on own data. Without NAME=: directory of all public data "
          "sets; default: where their packages or scripts/data.sh install them")
      ->type_name("[NAME=]PATH");
  run_command->add_flag("--no-evaluation", options.no_evaluation,
                        "Never evaluate models on this device's data, in any run");
  run_command->add_flag("--no-statistics", options.no_statistics,
                        "Never send statistics of this device's data, in any run");
  run_command->add_flag(
      "--once", options.once,
      "Exit when a run has ended and no other run is in progress; with an error if the client took no part");
  add_cache_option(*run_command, options);
  auto* share_base = run_command->add_option("--share-base", options.share_base,
                                             "Keep frozen weights of language models in files in DIR. All "
                                             "clients of this user that name the same DIR "
                                             "share one copy of them in memory");
  share_base->type_name("DIR");
  add_trainer_options(*run_command, options.trainer);
  share_base->excludes("--trainer");
  add_stream_options(*run_command, options);
  add_privacy_options(*run_command, options);
  add_swarm_options(*run_command, options);
  for (auto* command : {join_command, run_command}) add_directory_options(*command, options);
  auto* move_command = app.add_subcommand("move");
  add_move_options(*move_command, options);
  auto* key_command = app.add_subcommand("key");
  auto* status_command = app.add_subcommand("status");
  auto* doctor_command = app.add_subcommand("doctor");
  add_cache_option(*doctor_command, options);
  for (auto* command : {status_command, doctor_command}) add_format(*command, options.format);
  for (auto* command : {join_command, run_command, move_command, status_command, doctor_command, key_command})
    command->fallthrough();
  return {join_command, run_command, move_command, key_command, status_command, doctor_command};
}

}  // namespace fedge::apps
