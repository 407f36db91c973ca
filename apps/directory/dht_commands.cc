#include "apps/directory/dht_commands.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>

#include "apps/cli/validators.h"
#include "apps/commands/listing.h"
#include "apps/common.h"
#include "apps/directory/dht_doctor.h"
#include "apps/directory/record_text.h"
#include "apps/directory/visit.h"
#include "core/platform/calendar.h"

namespace fedge::apps {
namespace {

struct DhtOptions {
  std::string listen = "0.0.0.0:0";
  std::vector<std::string> bootstrap;
  std::string known_nodes;
  double wait = 5;
  std::string format = "table";
  std::vector<std::string> words;
  std::string key_file;
  std::vector<std::string> addresses;
  std::string run_name;
  std::string run_id = "0000000000000000";
  double lasts = 300;
  int ready_fd = -1;

  bool json() const { return format == "json"; }
};

Result<std::vector<protocol::Address>> parse_all(const std::vector<std::string>& texts, const char* option) {
  std::vector<protocol::Address> all;
  for (const std::string& text : texts) {
    auto address = protocol::parse_address(text);
    if (!address) return address.error().with_prefix(std::string(option) + ": ");
    all.push_back(std::move(*address));
  }
  return all;
}

Result<dht::NodeSettings> settings_of(const DhtOptions& options) {
  dht::NodeSettings settings;
  const auto listen = protocol::parse_address(options.listen);
  if (!listen) return listen.error().with_prefix("--listen: ");
  settings.listen = *listen;
  FEDGE_TRY(bootstrap, parse_all(options.bootstrap, "--bootstrap"));
  settings.bootstrap = std::move(bootstrap);
  settings.known_nodes = options.known_nodes;
  return settings;
}

Result<std::unique_ptr<Visit>> visit(const DhtOptions& options) {
  FEDGE_TRY(settings, settings_of(options));
  FEDGE_TRY(begun, Visit::begin(settings));
  FEDGE_TRY_VOID(begun->wait_for_contact(seconds(options.wait)));
  return begun;
}

Result<std::string> list_nodes(const DhtOptions& options) {
  FEDGE_TRY(here, visit(options));
  auto nodes = here->directory().known_nodes();
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  Listing list({"node", "address"});
  for (const dht::KnownNode& node : nodes) list.add({node.id, node.address});
  return options.json() ? list.json() : list.table();
}

Result<std::string> get_records(const DhtOptions& options) {
  FEDGE_TRY(key, key_sought(options.words));
  FEDGE_TRY(here, visit(options));
  FEDGE_TRY(records, here->lookup(key, seconds(options.wait)));
  const auto ignored = here->directory().ignored();
  for (std::size_t i = 0; i < dht::kFlaws; ++i) {
    const auto flaw = static_cast<dht::Flaw>(i);
    if (ignored[flaw] == 0 || flaw == dht::Flaw::kExpired) continue;  // nodes keep expired ones for a while
    std::fprintf(stderr, "fedge: ignored %llu records that are %s\n",
                 static_cast<unsigned long long>(ignored[flaw]), to_string(flaw));
  }
  if (records.empty() && !options.json())
    return Error{ErrorCode::kNotFound, "the directory holds no record under " + to_hex(key)};
  return options.json() ? records_as_json(records) : records_as_text(records);
}

// Publishes the announcement of a coordinator that cannot publish it itself.
Result<std::string> put_record(const DhtOptions& options) {
  FEDGE_TRY(addresses, parse_all(options.addresses, "--address"));
  FEDGE_TRY(run, parse_run_id(options.run_id));
  if (::access(options.key_file.c_str(), F_OK) != 0)
    return Error{ErrorCode::kNotFound, "--key-file: " + options.key_file +
                                           " does not exist; expected DATA_DIR/node.key of a coordinator"};
  FEDGE_TRY(key, load_or_create_key(options.key_file));
  const Time now = calendar_time();
  dht::SequenceNumbers numbers;
  FEDGE_TRY(record, dht::make_record(key, {numbers.next(now), now + seconds(options.lasts)},
                                     dht::Announcement{addresses, options.run_name, run}));
  FEDGE_TRY(here, visit(options));
  FEDGE_TRY_VOID(here->publish(record, seconds(options.wait)));
  return options.json() ? records_as_json({record}) : records_as_text({record});
}

Result<std::string> examine(const DhtOptions& options, bool& good) {
  FEDGE_TRY(settings, settings_of(options));
  Listing list({"check", "result", "detail"});
  for (const DirectoryCheck& check : examine_directory(settings)) {
    good = good && check.good;
    list.add({check.name, check.good ? "ok" : "FAIL", check.detail});
  }
  return options.json() ? list.json() : list.table();
}

// Runs until SIGINT or SIGTERM.
Result<std::string> be_a_node(const DhtOptions& options) {
  FEDGE_TRY(settings, settings_of(options));
  settings.fixed = true;
  set_up_logging("fedge", "info");
  boost::asio::io_context io;
  FEDGE_TRY(node, dht::DirectoryNode::open(io, settings));
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code&, int) { io.stop(); });
  const std::string address = protocol::to_string({settings.listen.host, node->directory().port()});
  log_event(Event{Severity::kInfo, "directory.joined", {}}.with("address", address));
  if (options.ready_fd >= 0) {
    const std::string line = address + "\n";
    if (::write(options.ready_fd, line.data(), line.size()) < 0) std::perror("fedge: --ready-fd");
    ::close(options.ready_fd);
  }
  io.run();
  node.reset();
  return std::string();
}

}  // namespace

struct DhtCommands::Impl {
  DhtOptions options;
  CLI::App* ls = nullptr;
  CLI::App* get = nullptr;
  CLI::App* put = nullptr;
  CLI::App* doctor = nullptr;
  CLI::App* node = nullptr;

  void add_common(CLI::App& command, bool needs_bootstrap);
  void add_put(CLI::App& dht);
  Result<std::string> carry_out(bool& good) const;
};

void DhtCommands::Impl::add_common(CLI::App& command, bool needs_bootstrap) {
  auto* bootstrap =
      command.add_option("--bootstrap", options.bootstrap, "A node that is already in the directory");
  bootstrap->type_name("HOST:PORT")->required(needs_bootstrap)->check(network_address());
  command.add_option("--listen", options.listen, "UDP address of this node; port 0 picks a free port")
      ->type_name("IP:PORT")
      ->capture_default_str()
      ->check(network_address());
  if (!needs_bootstrap) return;
  command.add_option("--wait", options.wait, "Longest time to wait for an answer")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(between(0.1, 600));
  add_format(command, options.format);
}

void DhtCommands::Impl::add_put(CLI::App& dht) {
  put = dht.add_subcommand("put");
  put->add_option("--key-file", options.key_file, "The coordinator's key file, DATA_DIR/node.key")
      ->type_name("FILE")
      ->required();
  put->add_option("--address", options.addresses, "Address at which clients reach the coordinator; at most 4")
      ->type_name("HOST:PORT")
      ->required()
      ->check(network_address());
  put->add_option("--run", options.run_name, "Announce a run of this name, not the coordinator's key")
      ->type_name("NAME");
  put->add_option("--run-id", options.run_id, "The run's id, 16 hexadecimal digits")
      ->type_name("ID")
      ->capture_default_str();
  put->add_option("--seconds", options.lasts, "Time until the record expires")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(between(1, 86'400));
  add_common(*put, true);
}

DhtCommands::DhtCommands(CLI::App& app) : impl_(std::make_unique<Impl>()) {
  DhtOptions& options = impl_->options;
  auto* dht = app.add_subcommand("dht")->require_subcommand(1);
  impl_->ls = dht->add_subcommand("ls");
  impl_->add_common(*impl_->ls, true);
  impl_->get = dht->add_subcommand("get");
  impl_->get->add_option("KEY", options.words, "Kind of key and its parts; see below")->required();
  impl_->add_common(*impl_->get, true);
  impl_->add_put(*dht);
  impl_->doctor = dht->add_subcommand("doctor");
  impl_->add_common(*impl_->doctor, true);
  impl_->node = dht->add_subcommand("node");
  impl_->add_common(*impl_->node, false);
  impl_->node
      ->add_option("--known-nodes", options.known_nodes,
                   "File in which the node keeps the nodes it knows, for its next start")
      ->type_name("FILE");
  impl_->node
      ->add_option("--ready-fd", options.ready_fd, "Write the address to this file descriptor when listening")
      ->type_name("FD");
}

DhtCommands::~DhtCommands() = default;

Result<std::string> DhtCommands::Impl::carry_out(bool& good) const {
  if (ls->parsed()) return list_nodes(options);
  if (get->parsed()) return get_records(options);
  if (put->parsed()) return put_record(options);
  if (node->parsed()) return be_a_node(options);
  return examine(options, good);
}

std::optional<int> DhtCommands::run(const std::string& program) const {
  const auto& all = *impl_;
  if (!all.ls->parsed() && !all.get->parsed() && !all.put->parsed() && !all.doctor->parsed() &&
      !all.node->parsed())
    return std::nullopt;
  bool good = true;
  const auto said = all.carry_out(good);
  if (!said) return report_failure(program, said.error());
  std::printf("%s", said->c_str());
  return good ? kOk : kFailed;
}

}  // namespace fedge::apps
