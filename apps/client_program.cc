#include "apps/client_program.h"

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "apps/cli/command_line.h"
#include "apps/client_health.h"
#include "apps/client_options.h"
#include "apps/common.h"
#include "client/daemon.h"
#include "client/discovery/move.h"
#include "client/energy/energy_meter.h"
#include "core/energy/power_file.h"
#include "core/platform/files.h"
#include "protocol/join_token.h"

namespace {

constexpr const char* kSoftware = "fedge-client";

using Options = fedge::apps::ClientOptions;

constexpr const char* kWhereTokensComeFrom =
    "the coordinator's operator creates a token with: fedge token create";

// The only word of the option's file or, without a file, the option's value.
fedge::Result<std::string> token_text(const Options& options) {
  constexpr std::size_t kMaxFile = std::size_t{1} << 20;
  if (options.token_file.empty()) return options.token;
  const bool input = options.token_file == "-";
  FEDGE_TRY(text,
            input ? fedge::read_standard_input(kMaxFile) : fedge::read_file(options.token_file, kMaxFile));
  std::istringstream words(text);
  const std::vector<std::string> tokens{std::istream_iterator<std::string>(words), {}};
  if (tokens.size() == 1) return tokens.front();
  const std::string where = "--token-file: " + (input ? "standard input" : options.token_file);
  if (tokens.empty()) return fedge::invalid(where + " contains no token; " + kWhereTokensComeFrom);
  return fedge::invalid(where + " contains " + std::to_string(tokens.size()) +
                        " tokens; give each client a file with one token");
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
  if (options.peer_listen.empty()) return fedge::invalid("--peer-announce needs --peer-listen");
  const auto announce = fedge::protocol::parse_listens(options.peer_announce);
  if (!announce) return announce.error().with_prefix("--peer-announce: ");
  return swarm;
}

fedge::Result<fedge::client::Joined> become_member(const Options& options) {
  fedge::client::JoinOrder order{.state_directory = options.state_directory,
                                 .software = fedge::apps::software(kSoftware),
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
  if (!key) return fedge::apps::report_failure(options.program, key.error());
  std::printf("%s\n", to_hex(key->public_key()).c_str());
  return fedge::apps::kOk;
}

// The beginning of commands for the same client: "fedge-client", with --state-dir unless it is the default.
std::string command_of(const Options& options) {
  if (options.state_directory == fedge::apps::default_client_state()) return options.program;
  return fedge::client::client_command(options.state_directory, options.program);
}

int join(const Options& options) {
  if (!options.has_token() && options.bootstrap.empty())
    return fedge::apps::report_wrong_usage(
        options.program + " join",
        std::string("the join token is missing: give TOKEN or --token-file FILE; ") + kWhereTokensComeFrom);
  const auto joined = become_member(options);
  if (!joined) return fedge::apps::report_failure(options.program, joined.error());
  const auto& membership = joined->membership;
  const std::string number = std::to_string(membership.client.value());
  std::printf("joined %s as client %s; now run: %s run\n",
              fedge::protocol::to_string(membership.coordinators.front()).c_str(), number.c_str(),
              command_of(options).c_str());
  if (joined->pending)
    std::printf("This client is pending until the coordinator's operator runs: fedge client approve %s\n",
                number.c_str());
  return fedge::apps::kOk;
}

fedge::Result<fedge::client::Membership> move_membership(const Options& options) {
  fedge::client::MoveOrder order{.state_directory = options.state_directory,
                                 .program = options.program,
                                 .software = fedge::apps::software(kSoftware),
                                 .addresses = {},
                                 .key = {},
                                 .check = !options.unchecked};
  for (const std::string& text : options.addresses) {
    FEDGE_TRY(address, fedge::protocol::parse_address(text));
    order.addresses.push_back(std::move(address));
  }
  if (!options.coordinator.empty()) {
    const auto key = fedge::parse_public_key(options.coordinator);
    if (!key) return key.error().with_prefix("--key: ");
    order.key = *key;
  }
  boost::asio::io_context io;
  return fedge::client::move(io, order);
}

int move_client(const Options& options) {
  if (options.addresses.empty() && options.coordinator.empty())
    return fedge::apps::report_wrong_usage(options.program + " move", "give ADDRESS, --key KEY, or both");
  const auto moved = move_membership(options);
  if (!moved) return fedge::apps::report_failure(options.program, moved.error());
  std::string addresses;
  for (const auto& address : moved->coordinators)
    addresses += (addresses.empty() ? "" : ", ") + fedge::protocol::to_string(address);
  std::printf("client %u connects to %s with key %s from now on%s\n", moved->client.value(),
              addresses.c_str(), to_hex(moved->coordinator_key).c_str(),
              options.unchecked ? "; not checked" : ", where the coordinator knows it");
  return fedge::apps::kOk;
}

// Standard input is not read: it may never end.
void report_unused_token(const Options& options, const fedge::client::Membership& membership) {
  const auto text = options.token_file == "-" ? fedge::invalid("not read") : token_text(options);
  const auto token = text ? fedge::protocol::parse_join_token(*text) : text.error();
  const bool another =
      token && !membership.is_of(token->coordinator) && token->coordinator != membership.next_key;
  const std::string joined = "this device has already joined " +
                             fedge::protocol::to_string(membership.coordinators.front()) + " as client " +
                             std::to_string(membership.client.value());
  using fedge::Severity;
  fedge::apps::log_event(
      fedge::Event{another ? Severity::kWarning : Severity::kInfo, "token.not_used", {}}.with(
          "reason",
          another ? joined + "; to join the token's coordinator, use another --state-dir" : joined));
}

// Joins unless this device has joined before; checks the coordinator against --coordinator.
fedge::Result<void> be_member(const Options& options) {
  const auto membership = fedge::client::read_membership(options.state_directory, options.program);
  if (!membership) {
    const bool may_join = options.has_token() || !options.run_name.empty() || !options.coordinator.empty();
    if (!may_join) return membership.error();
    if (const auto joined = become_member(options); !joined) return joined.error();
    return {};
  }
  if (options.has_token()) report_unused_token(options, *membership);
  if (options.coordinator.empty()) return {};
  const auto pin = fedge::parse_public_key(options.coordinator);
  if (!pin) return pin.error().with_prefix("--coordinator: ");
  if (membership->is_of(*pin)) return {};
  return fedge::Error{fedge::ErrorCode::kRefused,
                      "--coordinator: " + options.state_directory + " belongs to another coordinator, " +
                          to_hex(membership->coordinator_key) + "; use another --state-dir"};
}

fedge::client::DaemonOptions::SecureTerms secure_terms_of(const Options& options) {
  fedge::client::DaemonOptions::SecureTerms terms{.required = options.only_secure};
  terms.rules.min_survivors = options.min_clients;
  terms.rules.assumptions.corrupt = options.corrupt;
  return terms;
}

std::optional<std::uint32_t> per_day_of(const Options& options) {
  return options.max_updates_per_day > 0 ? std::optional(options.max_updates_per_day) : std::nullopt;
}

std::optional<double> positive(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

// What the device's owner says about the energy of its work; null: nothing.
fedge::Result<std::shared_ptr<const fedge::DevicePower>> power_of(const Options& options) {
  std::shared_ptr<const fedge::DevicePower> none;
  if (options.power_file.empty()) return none;
  FEDGE_TRY(power, fedge::read_power_file(options.power_file));
  return std::make_shared<const fedge::DevicePower>(std::move(power));
}

std::shared_ptr<const fedge::client::EnergyMeter> meter_of(const Options& options) {
  if (!options.measure_energy) return nullptr;
  auto meter = std::make_shared<const fedge::client::EnergyMeter>();
  using fedge::Severity;
  const std::string source = meter->source();
  fedge::apps::log_event(
      fedge::Event{source == "nothing" ? Severity::kWarning : Severity::kInfo, "energy.source", {}}.with(
          "source", source));
  return meter;
}

// The rules of the stream of this name; the default ones if no file is given for it.
fedge::Result<fedge::learn::StreamSpec> rules_of(const std::string& name, const Options& options) {
  std::string file;
  for (const std::string& given : options.screening) {
    const auto equals = given.find('=');
    if (equals == std::string::npos && file.empty()) file = given;
    if (equals != std::string::npos && given.substr(0, equals) == name) file = given.substr(equals + 1);
  }
  if (file.empty()) return fedge::learn::StreamSpec();
  return fedge::learn::read_stream_file(file);
}

fedge::Result<std::vector<fedge::client::SensorOptions>> streams_of(
    const Options& options, const fedge::learn::DataDirectories& directories) {
  std::vector<fedge::client::SensorOptions> streams;
  std::set<std::string> names;
  std::set<std::filesystem::path> sources;
  for (const std::string& text : options.streams) {
    FEDGE_TRY(stream, fedge::client::read_sensor_option(text));
    if (!names.insert(stream.name).second)
      return fedge::invalid("--stream: " + stream.name + " is given twice");
    if (!sources.insert(stream.source).second)
      return fedge::invalid("--stream: two streams read " + stream.source.string());
    if (directories.contains(stream.name))
      return fedge::invalid("--stream: --data also gives the data " + stream.name + "; omit one of them");
    if (stream.source != "-" && !std::filesystem::exists(stream.source))
      return fedge::Error{fedge::ErrorCode::kNotFound,
                          "--stream: " + stream.source.string() + " does not exist"};
    FEDGE_TRY(rules, rules_of(stream.name, options));
    stream.spec = rules;
    stream.directory = std::filesystem::path(options.state_directory) / "streams" / stream.name;
    stream.most_bytes = std::uint64_t{options.stream_mb} << 20;
    stream.test_share = options.stream_test;
    streams.push_back(std::move(stream));
  }
  for (const std::string& given : options.screening)
    if (const auto equals = given.find('=');
        equals != std::string::npos && !names.contains(given.substr(0, equals)))
      return fedge::invalid("--screening: there is no stream " + given.substr(0, equals));
  return streams;
}

int run(const Options& options) {
  fedge::apps::set_up_logging(options.program, options.log_level, options.log_format);
  std::signal(SIGPIPE, SIG_IGN);  // keep running when the log's reader exits
  auto trainer = fedge::apps::trainer_of(options.trainer);
  if (!trainer) return fedge::apps::report_failure(options.program, trainer.error());
  const auto directories = fedge::learn::read_data_directories(options.data_directories);
  if (!directories)
    return fedge::apps::report_failure(options.program, directories.error().with_prefix("--data: "));
  auto node = node_of(options);
  if (!node) return fedge::apps::report_failure(options.program, node.error());
  const auto swarm = swarm_of(options);
  if (!swarm) return fedge::apps::report_failure(options.program, swarm.error());
  const auto withheld = fedge::protocol::read_status_fields(options.withheld);
  if (!withheld)
    return fedge::apps::report_failure(options.program, withheld.error().with_prefix("--withhold: "));
  auto streams = streams_of(options, *directories);
  if (!streams) return fedge::apps::report_failure(options.program, streams.error());
  const auto power = power_of(options);
  if (!power) return fedge::apps::report_failure(options.program, power.error().with_prefix("--power: "));
  if (const auto ready = be_member(options); !ready)
    return fedge::apps::report_failure(options.program, ready.error());
  boost::asio::io_context io;
  auto daemon = fedge::client::Daemon::create(io, {.state_directory = options.state_directory,
                                                   .software = fedge::apps::software(kSoftware),
                                                   .backoff = {},
                                                   .capability = options.capability,
                                                   .cache_bytes = options.cache_mb << 20,
                                                   .power = *power,
                                                   .meter = meter_of(options),
                                                   .data_directories = *directories,
                                                   .streams = std::move(*streams),
                                                   .withheld = *withheld,
                                                   .directory = std::move(*node),
                                                   .swarm = *swarm,
                                                   .secure = secure_terms_of(options),
                                                   .max_epsilon = positive(options.max_epsilon),
                                                   .max_delta = options.max_delta,
                                                   .require_noise = positive(options.require_noise),
                                                   .max_updates_per_day = per_day_of(options),
                                                   .evaluates = !options.no_evaluation,
                                                   .counts = !options.no_statistics,
                                                   .splits = options.splits,
                                                   .shared_bases = options.share_base,
                                                   .stop_after_run = options.once,
                                                   .trainer = std::move(*trainer),
                                                   .on_event = fedge::apps::log_event});
  if (!daemon) return fedge::apps::report_failure(options.program, daemon.error());
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (!error) (*daemon)->stop();
  });
  (*daemon)->on_finished([&] {
    signals.cancel();
    signals.clear();  // a second signal ends the program
  });
  (*daemon)->start();
  io.run();
  if (const auto& failure = (*daemon)->failure())
    return fedge::apps::report_failure(options.program, *failure);
  return fedge::apps::kOk;
}

fedge::apps::HealthOptions health(const Options& options) {
  return {.state_directory = options.state_directory,
          .cache_bytes = options.cache_mb << 20,
          .json = options.format == "json"};
}

}  // namespace

int fedge::apps::client_main(int argc, char** argv) {
  return client_main_as(program_name(argv, kSoftware), argc, argv);
}

int fedge::apps::client_main_as(const std::string& program, int argc, char** argv) {
  protect_process();
  Options options{.program = program, .state_directory = default_client_state()};
  CLI::App app("", program);
  const std::string version = software(kSoftware);
  app.set_version_flag("--version", program == kSoftware ? version : program + " (" + version + ")");
  app.require_subcommand(1);
  const auto commands = add_client_commands(app, options);
  if (const auto code = parse_command_line(app, renamed(client_doc(), program), argc, argv)) return *code;
  hide_argument(argc, argv, options.token);
  return run_safely(program, [&] {
    if (*commands.join) return ::join(options);
    if (*commands.run) return ::run(options);
    if (*commands.move) return move_client(options);
    if (*commands.key) return show_key(options);
    return *commands.doctor ? client_doctor(program, health(options))
                            : client_status(program, health(options));
  });
}
