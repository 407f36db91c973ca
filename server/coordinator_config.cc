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
  links.max_unauthorised = count(
      limits, "connections_before_hello", links.max_unauthorised,
      "Maximum number of connections that are not authenticated yet. Above it, the oldest one is closed.");
  links.max_unauthorised_per_address =
      count(limits, "connections_before_hello_per_address", links.max_unauthorised_per_address,
            "Maximum number of connections from one IPv4 address or one IPv6 /64 network that are not "
            "authenticated yet. Above it, new connections are closed.");
  links.timeouts.handshake = whole_seconds(
      limits, "handshake_seconds", protocol::kHandshakeTimeout,
      "Timeout in seconds, first for the TLS handshake and then for the Hello message after it.");
  links.timeouts.idle = whole_seconds(limits, "idle_seconds", protocol::kIdleTimeout,
                                      "A connection is closed if the peer sends nothing, or accepts no data, "
                                      "for this many seconds. A ping is sent after a third of that time.");
  links.timeouts.ping = links.timeouts.idle / 3;
  JoinRates& rates = config.joining;
  // Bounded, because the memory for an address grows with it.
  rates.wrong_tokens_per_minute = static_cast<std::size_t>(limits.integer(
      "wrong_tokens_per_minute", static_cast<std::int64_t>(rates.wrong_tokens_per_minute), {1, 1000},
      "Maximum number of wrong join tokens per minute from one IPv4 address or IPv6 /64 network. Above it, "
      "further tokens from there are refused without a check."));
  rates.enrolments_per_hour = count(limits, "enrolments_per_hour", rates.enrolments_per_hour,
                                    "Maximum number of clients that may join per hour.");
  rates.enrolments_per_hour_per_address = count(
      limits, "enrolments_per_hour_per_address", rates.enrolments_per_hour_per_address,
      "Maximum number of clients that may join per hour from one IPv4 address or one IPv6 /64 network.");
  rates.enrolments_per_hour_per_token =
      count(limits, "enrolments_per_hour_per_token", rates.enrolments_per_hour_per_token,
            "Maximum number of clients that may join per hour with one token, whatever its number of uses.");
  config.swarm_upload_mbit =
      limits.number("swarm_upload_mbit", 0, {0, 1e6},
                    "Upload limit in Mbit/s (10^6 bit/s) for seeding models in runs "
                    "with dissemination.kind = \"swarm\" or \"serverless\". 0 = no limit.");
}

std::vector<protocol::Address> read_addresses(config::Reader& reader, const char* key, const char* doc) {
  std::vector<protocol::Address> addresses;
  for (const std::string& text : reader.texts(key, std::vector<std::string>(), doc)) {
    auto address = protocol::parse_address(text);
    if (!address || address->port == 0) {
      reader.fail(key, address ? "is '" + text + "', but the port must not be 0" : address.error().message);
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
      "UDP address IP:PORT of the coordinator's node of the distributed directory, in which clients find the "
      "coordinator. Port 0 picks a free port. Empty = do not take part in a directory.");
  options.node.bootstrap = read_addresses(reader, "bootstrap",
                                          "HOST:PORT of nodes that are already in the directory. Empty = "
                                          "this is the first node; other nodes must bootstrap from it.");
  options.announce = read_addresses(
      reader, "announce",
      "Addresses HOST:PORT of the coordinator that the directory announces to clients, at "
      "most 4. Empty = those of the key addresses; if that is empty too, the address of the key "
      "listen, which must then not be 0.0.0.0 or ::.");
  if (options.announce.size() > dht::kMaxAddresses) reader.fail("announce", "has more than 4 addresses");
  if (!listen) {
    for (const char* key : {"bootstrap", "announce"})
      if (reader.has(key)) reader.fail(key, "has no effect without directory.listen", {"directory.listen"});
    return std::nullopt;
  }
  options.node.listen = *listen;
  options.node.fixed = true;
  return options;
}

std::optional<IdentityProvider> read_oidc(config::Reader& reader) {
  IdentityProvider provider;
  provider.expected.issuer =
      reader.text("issuer", "",
                  "Issuer (claim iss) of the access tokens of the organisation's identity provider, exactly "
                  "as its tokens have it. Empty = only Fedge's own access tokens count.");
  provider.expected.audience = reader.text(
      "audience", "",
      "Audience (claim aud) that the identity provider puts into access tokens for this coordinator. Give "
      "the coordinator an audience of its own.");
  provider.key_set =
      reader.text("key_set", "",
                  "File of the identity provider's public keys (JSON Web Key Set, RFC 7517). It is read "
                  "again when it changes; while a new version is wrong, the former keys stay in force.");
  const std::vector<std::string> claims = {"sub", "preferred_username", "email"};
  provider.expected.user_claim = claims[reader.choice(
      "user_claim", claims, 0,
      "Claim that is the name of the user in Fedge. sub is the only one that providers never give to "
      "another person. email counts only if email_verified is true.")];
  if (provider.expected.issuer.empty()) {
    for (const char* key : {"audience", "key_set", "user_claim"})
      if (reader.has(key)) reader.fail(key, "has no effect without api.oidc.issuer", {"api.oidc.issuer"});
    return std::nullopt;
  }
  if (provider.expected.audience.empty())
    reader.fail("audience", "is missing; without it, tokens for other services would count",
                {"api.oidc.issuer"});
  if (provider.key_set.empty())
    reader.fail("key_set", "is missing; it is the file of the identity provider's public keys",
                {"api.oidc.issuer"});
  return provider;
}

ApiConfig read_api(config::Reader& reader) {
  ApiConfig api;
  api.listen =
      read_address(reader, "listen", "",
                   "Address HOST:PORT of the admin API over HTTPS (TLS 1.3). Empty = the API is only "
                   "on this machine, through the Unix socket admin.sock in the data directory.");
  api.certificate =
      reader.text("certificate", "",
                  "File of the server's certificate and its chain (PEM). Empty = the coordinator "
                  "creates a self-signed certificate, api-cert.pem in the data directory.");
  api.key =
      reader.text("key", "", "File of the certificate's private key (PEM). Only its owner may read it.");
  api.hosts =
      reader.texts("hosts", std::vector<std::string>(),
                   "Further host names and IP addresses in the self-signed certificate. It is created "
                   "once, so a later change has no effect.");
  for (const std::string& directory : reader.texts(
           "directories", std::vector<std::string>(),
           "Directories whose files remote users may name in run files (data.directory, "
           "data.tokenizer.file, model.base). Files elsewhere on the coordinator's machine are refused."))
    api.directories.emplace_back(directory);
  config::Reader oidc = reader.section("oidc");
  api.oidc = read_oidc(oidc);
  reader.adopt(oidc);
  if (!api.listen)
    for (const char* key : {"certificate", "key", "hosts", "directories", "oidc"})
      if (reader.has(key)) reader.fail(key, "has no effect without api.listen", {"api.listen"});
  if (api.certificate.empty() != api.key.empty())
    reader.fail(api.key.empty() ? "certificate" : "key", "needs both api.certificate and api.key",
                {"api.certificate", "api.key"});
  return api;
}

std::optional<TraceEndpoint> read_traces(config::Reader& reader) {
  const std::string url = reader.text(
      "endpoint", "",
      "Base address http://HOST:PORT of an OpenTelemetry collector that accepts OTLP over HTTP; /v1/traces "
      "is "
      "appended. The coordinator sends one trace for each round there. Only http:// is supported, so the "
      "collector must be on this machine or in a trusted network; it can forward the traces over TLS. Empty "
      "= "
      "send no traces.");
  if (url.empty()) return std::nullopt;
  auto endpoint = parse_trace_endpoint(url);
  if (endpoint) return std::move(*endpoint);
  reader.fail("endpoint", endpoint.error().message);
  return std::nullopt;
}

CoordinatorConfig read_all(config::Reader& root) {
  CoordinatorConfig config;
  if (const auto listen = read_address(root, "listen", "127.0.0.1:7433",
                                       "Address HOST:PORT to listen on. Port 0 picks a free port."))
    config.listen = *listen;
  else
    root.fail("listen", "is empty");
  config.addresses = read_addresses(
      root, "addresses",
      "Addresses HOST:PORT at which clients reach the coordinator, at most 4, in the order to try. The "
      "coordinator tells them to each client that connects, which keeps them; they are also in new join "
      "tokens. Empty = clients keep the addresses with which they joined, and tokens name that of listen.");
  if (config.addresses.size() > protocol::kMaxCoordinatorAddresses)
    root.fail("addresses", "has more than 4 addresses");
  for (std::size_t i = 0; i < config.addresses.size(); ++i) {
    const protocol::Address& address = config.addresses[i];
    if (address.host == "0.0.0.0" || address.host == "::")
      root.fail("addresses", "contains " + protocol::to_string(address) +
                                 ", at which nobody can be reached; name the address that clients use");
    if (std::find(config.addresses.begin(), config.addresses.begin() + static_cast<std::ptrdiff_t>(i),
                  address) != config.addresses.begin() + static_cast<std::ptrdiff_t>(i))
      root.fail("addresses", "contains " + protocol::to_string(address) + " twice");
  }
  config.data_directory = root.text("data_directory", "",
                                    "Directory of the coordinator's key, enrolled clients, audit log, runs "
                                    "and results. Created if it does not exist.");
  config.runs_at_once = static_cast<std::size_t>(root.integer(
      "runs_at_once", 1, {1, 16},
      "Number of runs that are executed at the same time. Other runs wait in the order of submission."));
  config.wait_limit_hours = root.number(
      "wait_limit_hours", 0, {0, 87'600},
      "Hours for which a run may wait for clients. It is then paused, and 'fedge run resume' continues it. "
      "0 = no limit.");
  config.threads = static_cast<std::size_t>(
      root.integer("threads", 0, {0, 1024},
                   "Threads of each run for evaluation and aggregation. 0 = the number of processors."));
  config.log_level = log_levels()[root.choice("log_level", log_levels(), 2,
                                              "Minimum severity of the events that are logged.")];
  const std::vector<std::string> formats = {"text", "json"};
  config.log_format = formats[root.choice("log_format", formats, 0,
                                          "Form of the log's lines. json = one object for each event.")];
  config::Reader retention = root.section("retention");
  config.keep_days = retention.number("keep_days", 0, {0, 36'500},
                                      "Days for which a run that has ended is kept. It is then removed with "
                                      "its results, metrics and journal, "
                                      "which the audit log records. 0 = for ever.");
  root.adopt(retention);
  config::Reader limits = root.section("limits");
  read_limits(limits, config);
  root.adopt(limits);
  config::Reader admin = root.section("admin");
  config.admin = read_address(admin, "listen", "",
                              "Address HOST:PORT of the admin endpoint (metrics, health). Empty = no "
                              "endpoint. It must not be reachable from untrusted networks.");
  root.adopt(admin);
  config::Reader api = root.section("api");
  config.api = read_api(api);
  root.adopt(api);
  config::Reader audit = root.section("audit");
  const double mib = audit.number("rotate_mib", 64, {0, 1e6},
                                  "Size in MiB at which the coordinator closes audit.log and begins a new "
                                  "one. The closed files, audit.1.log and so on, stay a part of the log. "
                                  "0 = never.");
  config.audit_rotate = static_cast<std::uint64_t>(mib * (1 << 20));
  root.adopt(audit);
  config::Reader directory = root.section("directory");
  config.directory = read_directory(directory);
  root.adopt(directory);
  config::Reader traces = root.section("traces");
  config.traces = read_traces(traces);
  root.adopt(traces);
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
