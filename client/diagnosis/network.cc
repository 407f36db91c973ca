// Checks the route to each coordinator, step by step. If one answers, failures of the others are warnings.
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "client/diagnosis/doctor.h"
#include "client/diagnosis/status_file.h"
#include "client/handshake.h"
#include "client/membership.h"
#include "protocol/session/endpoint.h"

namespace fedge::client {
namespace {

using boost::asio::ip::tcp;
using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kTcpTimeout{5};
// Limit for TLS and Hello together; the link has limits of its own.
constexpr std::chrono::seconds kSessionTimeout{15};

std::string milliseconds_text(SteadyClock::duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::microseconds>(duration).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " ms";
}

struct Route {
  const Membership& membership;
  const DoctorOptions& options;
  std::shared_ptr<protocol::TlsIdentity> identity;
  bool running;  // a daemon uses this membership: a Hello from here would disconnect it
};

void skip(std::initializer_list<const char*> names, const std::string& why, std::vector<Check>& checks) {
  for (const char* name : names) checks.push_back({name, Health::kSkipped, why});
}

std::optional<tcp::resolver::results_type> resolve(const protocol::Address& address,
                                                   std::vector<Check>& checks) {
  boost::asio::io_context io;
  boost::system::error_code error;
  auto found = tcp::resolver(io).resolve(address.host, std::to_string(address.port), error);
  if (error || found.empty()) {
    checks.push_back({"address", Health::kBad, address.host + " has no address: " + error.message()});
    return std::nullopt;
  }
  const std::string number = found.begin()->endpoint().address().to_string();
  checks.push_back(
      {"address", Health::kGood, number == address.host ? number : address.host + " is " + number});
  return found;
}

bool reach(const protocol::Address& address, const tcp::resolver::results_type& endpoints,
           std::vector<Check>& checks) {
  boost::asio::io_context io;
  tcp::socket socket(io);
  boost::system::error_code outcome = boost::asio::error::timed_out;
  const auto begun = SteadyClock::now();
  boost::asio::async_connect(
      socket, endpoints,
      [&](const boost::system::error_code& error, const tcp::endpoint&) { outcome = error; });
  io.run_for(kTcpTimeout);
  const std::string port = protocol::to_string(address);
  if (outcome) {
    checks.push_back({"tcp", Health::kBad,
                      port + " is not reachable: " + outcome.message() +
                          "; check that the coordinator is running and that no firewall blocks this port"});
    return false;
  }
  checks.push_back(
      {"tcp", Health::kGood, port + " answers in " + milliseconds_text(SteadyClock::now() - begun)});
  return true;
}

void say_hello(boost::asio::io_context& io, const Route& route, const std::shared_ptr<protocol::Link>& link,
               std::vector<Check>& checks) {
  if (route.running) {
    // A connection of this process would disconnect the daemon, so the daemon's own state is the answer.
    const auto status = read_status(route.options.state_directory);
    if (!status || status->activity.link == "starting") {
      checks.push_back({"hello", Health::kSkipped, "the running daemon has not reported its connection yet"});
    } else if (status->activity.link == "online") {
      checks.push_back({"hello", Health::kGood, "the running daemon is connected"});
    } else {
      checks.push_back({"hello", Health::kBad,
                        "the running daemon is not connected" +
                            (status->link_reason.empty() ? "" : ": " + status->link_reason)});
    }
    return;
  }
  std::optional<Result<protocol::Welcome>> answer;
  const auto begun = SteadyClock::now();
  greet(link, {.software = route.options.software},
        [&](Result<protocol::Welcome> welcome) { answer = std::move(welcome); });
  while (!answer && SteadyClock::now() - begun < kSessionTimeout && io.run_one_for(kSessionTimeout) > 0) {
  }
  if (!answer) answer = Error{ErrorCode::kUnavailable, "the coordinator did not answer in time"};
  if (!*answer) {
    checks.push_back({"hello", Health::kBad, answer->error().message});
    return;
  }
  checks.push_back({"hello", Health::kGood,
                    "accepted as client " + std::to_string((*answer)->client.value()) +
                        ", coordinator software: " + (*answer)->software});
  checks.push_back({"round trip", Health::kGood, milliseconds_text(SteadyClock::now() - begun)});
}

void open_session(const Route& route, const protocol::Address& address, std::vector<Check>& checks) {
  boost::asio::io_context io;
  std::optional<Result<std::shared_ptr<protocol::Link>>> connected;
  const auto begun = SteadyClock::now();
  protocol::connect(io, route.identity, address, route.membership.pinned(),
                    [&](Result<std::shared_ptr<protocol::Link>> link) { connected = std::move(link); });
  while (!connected && SteadyClock::now() - begun < kSessionTimeout && io.run_one_for(kSessionTimeout) > 0) {
  }
  if (!connected) connected = Error{ErrorCode::kUnavailable, "the TLS handshake did not complete in time"};
  if (!*connected) {
    checks.push_back({"tls", Health::kBad, connected->error().message});
    return skip({"hello"}, "needs TLS", checks);
  }
  checks.push_back({"tls", Health::kGood,
                    "the coordinator's key matches the pinned key, handshake in " +
                        milliseconds_text(SteadyClock::now() - begun)});
  const auto link = std::move(**connected);
  say_hello(io, route, link, checks);
  link->set_callbacks({});
  link->close("examined");
  io.run_for(kTcpTimeout);
}

std::vector<Check> follow(const Route& route, const protocol::Address& address) {
  std::vector<Check> checks;
  const auto endpoints = resolve(address, checks);
  if (!endpoints) {
    skip({"tcp", "tls", "hello"}, "needs an address", checks);
  } else if (!reach(address, *endpoints, checks)) {
    skip({"tls", "hello"}, "needs TCP", checks);
  } else {
    open_session(route, address, checks);
  }
  return checks;
}

}  // namespace

void examine_network(const DoctorOptions& options, std::vector<Check>& checks) {
  const auto membership = read_membership(options.state_directory);
  const bool has_key = std::filesystem::exists(options.state_directory / "node.key");
  const auto key = has_key ? open_node_key(options.state_directory) : invalid("no key");
  if (!membership || !key)
    return skip({"address", "tcp", "tls", "hello"}, "needs key and membership", checks);
  const auto identity = protocol::make_tls_identity(*key);
  if (!identity) {
    checks.push_back({"tls", Health::kBad, identity.error().message});
    return;
  }
  const bool running = daemon_runs(options.state_directory);
  const Route route{*membership, options, *identity, running};
  std::vector<std::vector<Check>> routes;
  bool open = false;
  for (const auto& address : membership->coordinators) {
    routes.push_back(follow(route, address));
    open = open || healthy(routes.back());
  }
  for (auto& route_checks : routes)
    for (Check& check : route_checks) {
      if (open && check.health == Health::kBad) check.health = Health::kWarning;
      checks.push_back(std::move(check));
    }
}

}  // namespace fedge::client
