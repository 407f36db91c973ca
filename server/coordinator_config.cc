#include "server/coordinator_config.h"

#include "protocol/limits.h"

namespace fedge::server {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::optional<protocol::Address> read_address(config::Reader& reader, const char* key, const char* fallback,
                                              const char* doc) {
  const std::string text = reader.text(key, fallback, doc);
  if (text.empty()) return std::nullopt;
  auto address = protocol::parse_address(text);
  if (!address) {
    reader.fail(key, address.error().message);
    return std::nullopt;
  }
  return *address;
}

std::size_t count(config::Reader& reader, const char* key, std::size_t fallback, const char* doc) {
  constexpr config::IntegerBounds kBounds{1, 1'000'000};
  return static_cast<std::size_t>(reader.integer(key, static_cast<std::int64_t>(fallback), kBounds, doc));
}

milliseconds whole_seconds(config::Reader& reader, const char* key, seconds fallback, const char* doc) {
  return seconds(reader.integer(key, fallback.count(), {1, 3600}, doc));
}

void read_limits(config::Reader& limits, CoordinatorConfig& config) {
  protocol::ListenOptions& links = config.connections;
  links.max_unauthorised = count(limits, "connections_before_hello", links.max_unauthorised,
                                 "Connections that have not been let in yet; above it the oldest gives way.");
  links.max_unauthorised_per_address =
      count(limits, "connections_before_hello_per_address", links.max_unauthorised_per_address,
            "The same from one address, of IPv6 from one /64; above it new ones are closed.");
  links.timeouts.handshake =
      whole_seconds(limits, "handshake_seconds", protocol::kHandshakeTimeout,
                    "For the TLS handshake, and again for an acceptable Hello after it.");
  links.timeouts.idle = whole_seconds(
      limits, "idle_seconds", protocol::kIdleTimeout,
      "A connection is closed when the other side has sent nothing, or taken nothing, for so long; "
      "after a third of it a ping goes out.");
  links.timeouts.ping = links.timeouts.idle / 3;
  JoinRates& rates = config.joining;
  // What is remembered of an address grows with this.
  rates.wrong_tokens_per_minute = static_cast<std::size_t>(limits.integer(
      "wrong_tokens_per_minute", static_cast<std::int64_t>(rates.wrong_tokens_per_minute), {1, 1000},
      "Wrong join tokens from one address, of IPv6 from one /64; then none from it is looked at."));
  rates.enrolments_per_hour =
      count(limits, "enrolments_per_hour", rates.enrolments_per_hour, "Clients that may join in all.");
  rates.enrolments_per_hour_per_address =
      count(limits, "enrolments_per_hour_per_address", rates.enrolments_per_hour_per_address,
            "Clients that may join from one address, of IPv6 from one /64.");
  rates.enrolments_per_hour_per_token =
      count(limits, "enrolments_per_hour_per_token", rates.enrolments_per_hour_per_token,
            "Clients that may join with one token, however many uses it has.");
  config.swarm_upload_mbit = limits.number("swarm_upload_mbit", 0, {0, 1e6},
                                           "Mbit/s, 10^6 bits, at which models are seeded in runs with "
                                           "dissemination.kind = \"swarm\"; 0 = no limit.");
}

std::vector<protocol::Address> read_addresses(config::Reader& reader, const char* key, const char* doc) {
  std::vector<protocol::Address> addresses;
  for (const std::string& text : reader.texts(key, std::vector<std::string>(), doc)) {
    auto address = protocol::parse_address(text);
    if (!address || address->port == 0) {
      reader.fail(key, address ? "holds '" + text + "', whose port is 0" : address.error().message);
      return {};
    }
    addresses.push_back(std::move(*address));
  }
  return addresses;
}

std::optional<DirectoryOptions> read_directory(config::Reader& reader) {
  DirectoryOptions options;
  const auto listen = read_address(
      reader, "listen", "",
      "IP:PORT, UDP, of the coordinator's node of the distributed directory, in which clients find it; port "
      "0 picks a free one. Empty: it takes part in none.");
  options.node.bootstrap = read_addresses(
      reader, "bootstrap",
      "HOST:PORT of nodes that are in the directory already. None: this is its first node, and the one that "
      "others are told to begin with.");
  options.announce =
      read_addresses(reader, "announce",
                     "HOST:PORT at which clients reach the coordinator, at most 4, as the directory says. "
                     "None: where it listens, if that is one address.");
  if (options.announce.size() > dht::kMaxAddresses) reader.fail("announce", "holds more than 4 addresses");
  if (!listen) {
    for (const char* key : {"bootstrap", "announce"})
      if (reader.has(key)) reader.fail(key, "has no effect without directory.listen");
    return std::nullopt;
  }
  options.node.listen = *listen;
  options.node.fixed = true;
  return options;
}

CoordinatorConfig read_all(config::Reader& root) {
  CoordinatorConfig config;
  if (const auto listen =
          read_address(root, "listen", "127.0.0.1:7433", "HOST:PORT to listen on; port 0 picks a free one."))
    config.listen = *listen;
  else
    root.fail("listen", "is empty");
  config.data_directory = root.text(
      "data_directory", "", "Key, enrolled clients, audit log, runs and their results; made if absent.");
  config.runs_at_once = static_cast<std::size_t>(
      root.integer("runs_at_once", 1, {1, 16},
                   "Runs that are led at the same time; the others wait in the order of submission."));
  config.threads = static_cast<std::size_t>(root.integer(
      "threads", 0, {0, 1024},
      "Threads of each run for evaluation and aggregation; 0 = as many as there are processors."));
  config.log_level = log_levels()[root.choice("log_level", log_levels(), 2, "What is logged, and worse.")];
  config::Reader limits = root.section("limits");
  read_limits(limits, config);
  root.adopt(limits);
  config::Reader admin = root.section("admin");
  config.admin =
      read_address(admin, "listen", "",
                   "HOST:PORT of the endpoint for metrics; empty is none. It should not be reachable "
                   "from outside.");
  root.adopt(admin);
  config::Reader directory = root.section("directory");
  config.directory = read_directory(directory);
  root.adopt(directory);
  return config;
}

}  // namespace

const std::vector<std::string>& log_levels() {
  static const std::vector<std::string> levels = {"trace", "debug", "info", "warning", "error", "off"};
  return levels;
}

Result<CoordinatorConfig> read_coordinator_config(const config::Document& document) {
  config::Reader root(document.root, "", document.name);
  CoordinatorConfig config = read_all(root);
  FEDGE_TRY_VOID(root.finish());
  return config;
}

std::vector<config::KeyDoc> describe_coordinator_config() {
  std::vector<config::KeyDoc> docs;
  const config::Table nothing;
  config::Reader root(nothing, "", "", &docs);
  read_all(root);
  return docs;
}

}  // namespace fedge::server
