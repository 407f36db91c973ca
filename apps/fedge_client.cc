// fedge-client: the daemon of an edge device.
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <utility>
#include <vector>

#include "apps/client_health.h"
#include "apps/common.h"
#include "client/daemon.h"
#include "client/trainers/process.h"
#include "core/platform/files.h"
#include "privacy/secure_aggregation/graph_parameters.h"
#include "protocol/join_token.h"

namespace {

constexpr const char* kProgram = "fedge-client";
constexpr const char* kExamples = R"(
Examples:
  fedge-client join --token-file token.txt     become a client of the coordinator that made the token
  fedge-client join --token-file - < token.txt the same from standard input
  fedge-client run                             stay connected and train when asked, for ever
  fedge-client run --token-file token.txt      join first, unless already a member, for containers
  fedge-client run --trainer "python3 train.py data.safetensors"
                                               the same, with a program of your own in any language that
                                               trains (docs/reference/trainer-protocol.md)
  fedge-client run --bootstrap dht.example.org:4222
                                               the same, and finds its coordinator when that has moved
  fedge-client join --bootstrap dht.example.org:4222 --run fashion
                                               without a token, once the operator has said: fedge client add,
                                               with the key that 'fedge-client key' prints
  fedge-client status                          who this client is, and what its daemon is doing
  fedge-client doctor                          what keeps it from taking part, checked one by one
)";

struct Options {
  std::string state_directory;
  std::string log_level = "info";
  std::string token;
  std::string token_file;
  double capability = 1;
  std::vector<std::string> data_directories;  // DIR, or NAME=DIR
  bool once = false;
  std::string trainer;  // empty: the built-in one
  std::uint64_t trainer_memory_mb = 0;
  double trainer_timeout_seconds = 300;
  int trainer_nice = 10;
  std::size_t cache_mb = 1024;
  std::string format = "table";
  std::vector<std::string> bootstrap;  // HOST:PORT; with any, the client is a node of the directory
  std::string directory_listen = "0.0.0.0:0";
  std::string run_name;
  std::string coordinator;  // its key
  std::vector<std::string> withheld;
  std::string peer_listen;  // empty: other clients cannot connect to this one
  std::string peer_announce;
  double upload_mbit = 0;
  bool only_secure = false;
  std::uint32_t min_clients = 0;
  double corrupt = fedge::privacy::GraphAssumptions().corrupt;
  double max_epsilon = 0;  // 0: not given
  double max_delta = 1e-5;
  double require_noise = 0;  // 0: not given

  bool has_token() const { return !token.empty() || !token_file.empty(); }
};

std::string default_state_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::string(state) + "/fedge-client";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.local/state/fedge-client";
  return "fedge-client-state";
}

fedge::Result<std::string> token_text(const Options& options) {
  constexpr std::size_t kMaxFile = 4096;
  if (options.token_file.empty()) return options.token;
  FEDGE_TRY(text, options.token_file == "-" ? fedge::read_standard_input(kMaxFile)
                                            : fedge::read_file(options.token_file, kMaxFile));
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const std::size_t end = text.find_first_of(" \t\r\n", std::min(begin, text.size()));
  return begin == std::string::npos ? std::string() : text.substr(begin, end - begin);
}

using MaybeNode = std::optional<fedge::dht::NodeSettings>;

fedge::Result<MaybeNode> node_of(const Options& options) {
  if (options.bootstrap.empty()) return MaybeNode();
  fedge::dht::NodeSettings node;
  const auto listen = fedge::protocol::parse_address(options.directory_listen);
  if (!listen) return listen.error().with_prefix("--directory-listen: ");
  node.listen = *listen;
  for (const std::string& text : options.bootstrap) {
    auto address = fedge::protocol::parse_address(text);
    if (!address) return address.error().with_prefix("--bootstrap: ");
    node.bootstrap.push_back(std::move(*address));
  }
  node.known_nodes = std::filesystem::path(options.state_directory) / "directory-nodes";
  return MaybeNode(std::move(node));
}

fedge::Result<fedge::client::SwarmOptions> swarm_of(const Options& options) {
  fedge::client::SwarmOptions swarm{.listen = {},
                                    .announce = options.peer_announce,
                                    .upload_limit = fedge::apps::bytes_per_second(options.upload_mbit)};
  if (!options.peer_listen.empty()) {
    const auto listen = fedge::protocol::parse_address(options.peer_listen);
    if (!listen) return listen.error().with_prefix("--peer-listen: ");
    swarm.listen = *listen;
  }
  if (options.peer_announce.empty()) return swarm;
  if (options.peer_listen.empty())
    return fedge::invalid("--peer-announce: nobody listens there without --peer-listen");
  const auto announce = fedge::protocol::parse_listens(options.peer_announce);
  if (!announce) return announce.error().with_prefix("--peer-announce: ");
  return swarm;
}

fedge::Result<fedge::client::Joined> become_member(const Options& options) {
  fedge::client::JoinOrder order{.state_directory = options.state_directory,
                                 .software = fedge::apps::software(kProgram),
                                 .token = {},
                                 .directory = {},
                                 .run_name = options.run_name,
                                 .coordinator = {}};
  if (options.has_token()) {
    FEDGE_TRY(text, token_text(options));
    FEDGE_TRY(token, fedge::protocol::parse_join_token(text));
    order.token = std::move(token);
  }
  FEDGE_TRY(node, node_of(options));
  order.directory = std::move(node);
  if (!options.coordinator.empty()) {
    const auto pin = fedge::parse_public_key(options.coordinator);
    if (!pin) return pin.error().with_prefix("--coordinator: ");
    order.coordinator = *pin;
  }
  boost::asio::io_context io;
  return fedge::client::join(io, order);
}

int show_key(const Options& options) {
  const auto key = fedge::client::open_node_key(options.state_directory);
  if (!key) return fedge::apps::report_failure(kProgram, key.error());
  std::printf("%s\n", to_hex(key->public_key()).c_str());
  return fedge::apps::kOk;
}

int join(const Options& options) {
  const auto joined = become_member(options);
  if (!joined) return fedge::apps::report_failure(kProgram, joined.error());
  const auto& membership = joined->membership;
  const std::string number = std::to_string(membership.client.value());
  std::printf("joined %s as client %s; now run: fedge-client run\n",
              fedge::protocol::to_string(membership.coordinators.front()).c_str(), number.c_str());
  if (joined->pending)
    std::printf("It works once the coordinator's operator has said: fedge client approve %s\n",
                number.c_str());
  return fedge::apps::kOk;
}

using MaybeTrainer = std::optional<fedge::client::TrainerOptions>;

fedge::Result<MaybeTrainer> trainer_of(const Options& options) {
  if (options.trainer.empty()) return MaybeTrainer();
  auto command = fedge::client::split_command(options.trainer);
  if (!command) return command.error().with_prefix("--trainer: ");
  return MaybeTrainer({.command = std::move(*command),
                       .memory_bytes = options.trainer_memory_mb << 20,
                       .nice = options.trainer_nice,
                       .silence = fedge::seconds(options.trainer_timeout_seconds)});
}

// Joins, unless it has before, and with whom it was told to.
fedge::Result<void> be_member(const Options& options) {
  const auto membership = fedge::client::read_membership(options.state_directory);
  if (!membership) {
    const bool may_join = options.has_token() || !options.run_name.empty() || !options.coordinator.empty();
    if (!may_join) return {};
    if (const auto joined = become_member(options); !joined) return joined.error();
    return {};
  }
  if (options.coordinator.empty()) return {};
  const auto pin = fedge::parse_public_key(options.coordinator);
  if (!pin) return pin.error().with_prefix("--coordinator: ");
  if (membership->coordinator_key == *pin) return {};
  return fedge::Error{fedge::ErrorCode::kRefused,
                      "--coordinator: " + options.state_directory + " belongs to another one, " +
                          to_hex(membership->coordinator_key) + "; use another state directory"};
}

fedge::client::DaemonOptions::SecureTerms secure_terms_of(const Options& options) {
  fedge::client::DaemonOptions::SecureTerms terms{.required = options.only_secure};
  terms.rules.min_survivors = options.min_clients;
  terms.rules.assumptions.corrupt = options.corrupt;
  return terms;
}

std::optional<double> positive(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

int run(const Options& options) {
  fedge::apps::set_up_logging(kProgram, options.log_level);
  std::signal(SIGPIPE, SIG_IGN);  // a log that nobody reads is no reason to end
  auto trainer = trainer_of(options);
  if (!trainer) return fedge::apps::report_failure(kProgram, trainer.error());
  const auto directories = fedge::learn::read_data_directories(options.data_directories);
  if (!directories)
    return fedge::apps::report_failure(kProgram, directories.error().with_prefix("--data-directory: "));
  auto node = node_of(options);
  if (!node) return fedge::apps::report_failure(kProgram, node.error());
  const auto swarm = swarm_of(options);
  if (!swarm) return fedge::apps::report_failure(kProgram, swarm.error());
  const auto withheld = fedge::protocol::read_status_fields(options.withheld);
  if (!withheld) return fedge::apps::report_failure(kProgram, withheld.error().with_prefix("--withhold: "));
  if (const auto ready = be_member(options); !ready)
    return fedge::apps::report_failure(kProgram, ready.error());
  boost::asio::io_context io;
  auto daemon = fedge::client::Daemon::create(io, {.state_directory = options.state_directory,
                                                   .software = fedge::apps::software(kProgram),
                                                   .backoff = {},
                                                   .capability = options.capability,
                                                   .cache_bytes = options.cache_mb << 20,
                                                   .data_directories = *directories,
                                                   .withheld = *withheld,
                                                   .directory = std::move(*node),
                                                   .swarm = *swarm,
                                                   .secure = secure_terms_of(options),
                                                   .max_epsilon = positive(options.max_epsilon),
                                                   .max_delta = options.max_delta,
                                                   .require_noise = positive(options.require_noise),
                                                   .stop_after_run = options.once,
                                                   .trainer = std::move(*trainer),
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

void add_trainer_options(CLI::App& run, Options& options) {
  run.add_option("--trainer", options.trainer,
                 "Program and arguments that train instead of the built-in trainer; split as a shell does, "
                 "without variables and patterns");
  run.add_option("--trainer-memory-mb", options.trainer_memory_mb,
                 "Private memory that it may have, in MiB; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  run.add_option("--trainer-timeout", options.trainer_timeout_seconds,
                 "Seconds without a sign of life after which it counts as hanging and is ended")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 1e6));
  run.add_option("--trainer-nice", options.trainer_nice, "How far it stands back for other programs")
      ->capture_default_str()
      ->check(CLI::Range(0, 19));
}

void add_swarm_options(CLI::App& run, Options& options) {
  run.add_option(
         "--peer-listen", options.peer_listen,
         "Where other clients may connect, in runs whose clients exchange models; without it this one "
         "connects to others alone")
      ->type_name("IP:PORT");
  run.add_option(
         "--peer-announce", options.peer_announce,
         "The port where they are told to connect, if that is not the one of --peer-listen; HOST, if it is "
         "given, must be the address that the coordinator sees")
      ->type_name("[HOST]:PORT");
  run.add_option("--upload-mbit", options.upload_mbit,
                 "Mbit/s, 10^6 bits, that are given to other clients; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
}

void add_directory_options(CLI::App& command, Options& options) {
  command
      .add_option("--bootstrap", options.bootstrap,
                  "A node of the directory: the coordinator is looked up there; may be repeated")
      ->type_name("HOST:PORT")
      ->allow_extra_args(false);  // what follows it may be the token
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
  fedge::apps::protect_process();
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
      ->type_name("[NAME=]DIR")
      ->allow_extra_args(false);
  run_command->add_flag("--once", options.once, "End when a run has ended and no other is left");
  run_command->add_flag("--only-secure", options.only_secure,
                        "Take part only in runs whose coordinator sees sums of updates, not single ones");
  run_command
      ->add_option("--min-clients", options.min_clients,
                   "Of such a sum: of fewer clients' updates help nobody to see it, whatever the run says")
      ->check(CLI::Range(2, 65'536));
  run_command
      ->add_option(
          "--corrupt", options.corrupt,
          "Share of its clients that the coordinator may control: help with no sum whose masks are not "
          "secure against so many, whatever the run says")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.33));
  run_command
      ->add_option("--max-epsilon", options.max_epsilon,
                   "Take part only in runs where this client noises its updates itself, so that all of them "
                   "tell at most this (local differential privacy)")
      ->type_name("EPSILON")
      ->check(CLI::Range(1e-3, 1e6));
  run_command
      ->add_option(
          "--require-noise", options.require_noise,
          "Take part only in runs where clients add noise, this one or the honest ones of each sum, that "
          "keeps its updates in the run within this epsilon")
      ->type_name("EPSILON")
      ->check(CLI::Range(1e-3, 1e6));
  run_command
      ->add_option("--max-delta", options.max_delta,
                   "The chance that they tell more than --max-epsilon, whatever delta a run has")
      ->capture_default_str()
      ->type_name("DELTA")
      ->needs("--max-epsilon")
      ->check(CLI::Range(1e-15, 0.1));
  run_command
      ->add_option(
          "--withhold", options.withheld,
          "What is not said of this device in its records, whoever asks: latency, freshness, utility, "
          "availability, labels")
      ->delimiter(',')
      ->allow_extra_args(false);
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
  fedge::apps::take_one_value_each(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? fedge::apps::kOk : fedge::apps::kWrongUsage;
  }
  fedge::apps::hide_argument(argc, argv, options.token);
  return fedge::apps::run_safely(kProgram, [&] {
    if (*join_command) return join(options);
    if (*run_command) return run(options);
    if (*key_command) return show_key(options);
    return *doctor_command ? fedge::apps::client_doctor(kProgram, health(options))
                           : fedge::apps::client_status(kProgram, health(options));
  });
}
