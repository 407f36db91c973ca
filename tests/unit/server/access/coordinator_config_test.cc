#include "server/coordinator_config.h"

#include <doctest/doctest.h>

using namespace fedge;
using server::CoordinatorConfig;

namespace {

Result<CoordinatorConfig> read(const std::string& text) {
  auto document = config::parse_toml(text, "coordinator.toml");
  REQUIRE(document);
  return server::read_coordinator_config(*document);
}

std::string fault(const std::string& text) {
  const auto config = read(text);
  return config ? "none" : config.error().message;
}

}  // namespace

TEST_CASE("coordinator config: an empty file is the documented defaults") {
  const auto config = read("");
  REQUIRE(config);
  CHECK(protocol::to_string(config->listen) == "127.0.0.1:7433");
  CHECK(config->data_directory.empty());
  CHECK(config->threads == 0);
  CHECK(config->log_level == "info");
  CHECK_FALSE(config->admin);
  CHECK_FALSE(config->traces);
  CHECK(config->connections.max_unauthorised == 256);
  CHECK(config->connections.max_unauthorised_per_address == 16);
  CHECK(config->connections.timeouts.handshake == std::chrono::seconds(10));
  CHECK(config->connections.timeouts.idle == std::chrono::seconds(60));
  CHECK(config->connections.timeouts.ping == std::chrono::seconds(20));
  CHECK(config->joining.wrong_tokens_per_minute == 5);
  CHECK(config->joining.enrolments_per_hour == 10'000);
  CHECK(config->joining.enrolments_per_hour_per_address == 1'000);
  CHECK(config->joining.enrolments_per_hour_per_token == 1'000);
  CHECK(config->audit_rotate == 64 << 20);
}

TEST_CASE("coordinator config: every key that is documented is read, and into its own place") {
  const auto config = read(R"(
listen = "[::1]:7000"
data_directory = "/var/lib/fedge"
runs_at_once = 4
wait_limit_hours = 1.5
threads = 3
log_level = "trace"
log_format = "json"
[limits]
connections_before_hello = 11
connections_before_hello_per_address = 12
handshake_seconds = 13
idle_seconds = 30
wrong_tokens_per_minute = 15
enrolments_per_hour = 16
enrolments_per_hour_per_address = 17
enrolments_per_hour_per_token = 18
swarm_upload_mbit = 19.5
[admin]
listen = "127.0.0.1:9000"
[api]
listen = "0.0.0.0:7434"
certificate = "/etc/fedge/cert.pem"
key = "/etc/fedge/key.pem"
hosts = ["fedge.example.org"]
directories = ["/srv/data"]
[api.oidc]
issuer = "https://id.example.org"
audience = "fedge"
key_set = "/etc/fedge/keys.json"
user_claim = "email"
[audit]
rotate_mib = 0.5
[directory]
listen = "0.0.0.0:4222"
bootstrap = ["dht.example.org:4223"]
announce = ["fedge.example.org:7433", "192.0.2.7:1"]
[traces]
endpoint = "http://127.0.0.1:4318/otlp"
)");
  REQUIRE_MESSAGE(config, config.error().message);
  REQUIRE(config->directory);
  CHECK(config->directory->node.listen == protocol::Address{"0.0.0.0", 4222});
  CHECK(config->directory->node.bootstrap == std::vector<protocol::Address>{{"dht.example.org", 4223}});
  CHECK(config->directory->announce ==
        std::vector<protocol::Address>{{"fedge.example.org", 7433}, {"192.0.2.7", 1}});
  CHECK(config->listen.host == "::1");
  CHECK(config->listen.port == 7000);
  CHECK(config->data_directory == "/var/lib/fedge");
  CHECK(config->runs_at_once == 4);
  CHECK(config->wait_limit_hours == 1.5);
  CHECK(config->threads == 3);
  CHECK(config->log_level == "trace");
  CHECK(config->log_format == "json");
  CHECK(config->connections.max_unauthorised == 11);
  CHECK(config->connections.max_unauthorised_per_address == 12);
  CHECK(config->connections.timeouts.handshake == std::chrono::seconds(13));
  CHECK(config->connections.timeouts.idle == std::chrono::seconds(30));
  CHECK(config->connections.timeouts.ping == std::chrono::seconds(10));
  CHECK(config->joining.wrong_tokens_per_minute == 15);
  CHECK(config->joining.enrolments_per_hour == 16);
  CHECK(config->joining.enrolments_per_hour_per_address == 17);
  CHECK(config->joining.enrolments_per_hour_per_token == 18);
  CHECK(config->swarm_upload_mbit == 19.5);
  CHECK(config->audit_rotate == 512 << 10);
  CHECK(config->admin->port == 9000);
  CHECK(config->api.listen == protocol::Address{"0.0.0.0", 7434});
  CHECK(config->api.certificate == "/etc/fedge/cert.pem");
  CHECK(config->api.key == "/etc/fedge/key.pem");
  CHECK(config->api.directories == std::vector<std::filesystem::path>{"/srv/data"});
  REQUIRE(config->api.oidc);
  CHECK(config->api.oidc->expected.issuer == "https://id.example.org");
  CHECK(config->api.oidc->expected.audience == "fedge");
  CHECK(config->api.oidc->expected.user_claim == "email");
  CHECK(config->api.oidc->key_set == "/etc/fedge/keys.json");
  CHECK(config->api.hosts == std::vector<std::string>{"fedge.example.org"});
  CHECK(server::describe_coordinator_config().size() == 33);
  REQUIRE(config->traces);
  CHECK(config->traces->address == protocol::Address{"127.0.0.1", 4318});
  CHECK(config->traces->target == "/otlp/v1/traces");
}

TEST_CASE("coordinator config: a bad key or value is named with file and line, and what would be right") {
  CHECK(fault("[limits]\nidle_second = 3\n") ==
        "coordinator.toml:2: unknown key limits.idle_second, did you mean limits.idle_seconds?");
  CHECK(fault("data_directry = 'x'\n") ==
        "coordinator.toml:1: unknown key data_directry, did you mean data_directory?");
  CHECK(fault("[limits]\nhandshake_seconds = 0\n") ==
        "coordinator.toml:2: limits.handshake_seconds: 0 is out of range, expected 1 to 3600");
  CHECK(fault("threads = 'two'\n") == "coordinator.toml:1: threads: found a string, expected an integer");
  CHECK(fault("listen = ''\n") == "coordinator.toml:1: listen: is empty");
  CHECK(fault("listen = 'nowhere'\n").starts_with("coordinator.toml:1: listen: "));
  CHECK(fault("[admin]\nlisten = '127.0.0.1'\n").starts_with("coordinator.toml:2: admin.listen: "));
  CHECK(fault("[traces]\nendpoint = 'https://a:1'\n")
            .starts_with(
                "coordinator.toml:2: traces.endpoint: is 'https://a:1', but traces are sent only over "));
  CHECK(
      fault("[traces]\nendpoint = 'localhost:4318'\n").starts_with("coordinator.toml:2: traces.endpoint: "));
  CHECK(fault("log_level = 'inf'\n").find("did you mean \"info\"?") != std::string::npos);
  CHECK(fault("[limit]\n").find("did you mean limits?") != std::string::npos);
}

TEST_CASE("coordinator config: an identity provider needs its issuer, audience and key set, and HTTPS") {
  const std::string api = "[api]\nlisten = '127.0.0.1:0'\n[api.oidc]\n";
  const std::string whole = "issuer = 'https://id'\naudience = 'fedge'\nkey_set = 'keys.json'\n";
  const auto config = read(api + whole);
  REQUIRE_MESSAGE(config, config.error().message);
  REQUIRE(config->api.oidc);
  CHECK(config->api.oidc->expected.user_claim == "sub");
  CHECK_FALSE(read("[api]\nlisten = '127.0.0.1:0'\n")->api.oidc);
  for (const std::string key : {"audience = 'fedge'", "key_set = 'keys.json'", "user_claim = 'sub'"})
    CHECK(fault(api + key + "\n") == "coordinator.toml:4: api.oidc." + key.substr(0, key.find(' ')) +
                                         ": has no effect without api.oidc.issuer");
  CHECK(fault(api + "issuer = 'https://id'\nkey_set = 'keys.json'\n").find("api.oidc.audience: is missing") !=
        std::string::npos);
  CHECK(fault(api + "issuer = 'https://id'\naudience = 'fedge'\n").find("api.oidc.key_set: is missing") !=
        std::string::npos);
  CHECK(fault("[api.oidc]\n" + whole).find("api.oidc: has no effect without api.listen") !=
        std::string::npos);
  CHECK(fault(api + whole + "user_claim = 'name'\n").find("api.oidc.user_claim") != std::string::npos);
  CHECK(fault(api + whole + "client_id = 'x'\n").find("unknown key api.oidc.client_id") != std::string::npos);
}
