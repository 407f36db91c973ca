// The admin pages of a coordinator with a run, as Prometheus, a supervisor and strangers request them.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "client/daemon.h"
#include "core/platform/files.h"
#include "protocol/session/endpoint.h"
#include "server/enrolment.h"
#include "server/report/metrics.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/member.h"
#include "tests/integration/run_program.h"
#include "tests/support/exposition_parser.h"
#include "tests/support/http/http_client.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using test::body_of;
using test::CoordinatorProcess;
using test::get;
using test::HttpClient;
using test::Scrape;

namespace {

// A coordinator with admin pages, and one client.
struct WatchedRun {
  test::TemporaryDirectory data;
  test::TemporaryDirectory out;
  std::filesystem::path directory = out.path() / "coordinator";
  std::string secret;  // the client's join secret
  boost::asio::io_context io;
  std::unique_ptr<client::Daemon> daemon;
  std::unique_ptr<CoordinatorProcess> coordinator;

  // More rounds than a test takes, unless it sets another number.
  explicit WatchedRun(int rounds = 100'000) {
    test::write_tiny_dataset(data);
    coordinator = std::make_unique<CoordinatorProcess>(CoordinatorProcess::Options{
        .directory = directory,
        .results = out.path() / "results",
        .settings = {"data.directory=" + data.path().string(), "data.partition.clients=1",
                     "sampling.clients_per_round=2",  // adjusted to 1
                     "run.rounds=" + std::to_string(rounds), "model.hidden=[4]"},
        .more = {"--admin-listen", "127.0.0.1:0"}});
  }
  std::uint16_t port() const {
    const auto text = read_file(directory / "admin-address", 1000);
    REQUIRE(text);
    const auto address = protocol::parse_address(text->substr(0, text->find('\n')));
    REQUIRE(address);
    return address->port;
  }
  std::string ask(const std::string& path) const {
    HttpClient client(port());
    client.send(get(path));
    return client.read_answer();
  }
  Scrape scrape() const {
    const Scrape scrape = test::parse_exposition(body_of(ask("/metrics")));
    for (const std::string& problem : scrape.problems) FAIL_CHECK(problem);
    return scrape;
  }
  void start_client() {
    const auto state = out.path() / "client";
    secret = test::make_member(directory, coordinator->address(), state);
    auto created = client::Daemon::create(io, {.state_directory = state, .software = "canary-software"});
    REQUIRE(created);
    daemon = std::move(*created);
    daemon->start();
  }
  // Runs until this many rounds have ended.
  void run_rounds(double rounds) {
    while (*scrape().value("fedge_rounds_total") < rounds) io.run_one_for(std::chrono::milliseconds(20));
  }
};

}  // namespace

TEST_CASE("admin pages: a coordinator's metrics are those of its results") {
  WatchedRun watched;
  const Scrape before = watched.scrape();
  CHECK(before.value("fedge_rounds_total") == 0);
  CHECK(before.value("fedge_clients_connected") == 0);
  CHECK(before.value("fedge_clients_enrolled") == 0);
  watched.start_client();
  watched.run_rounds(3);
  const std::string page = body_of(watched.ask("/metrics"));
  const Scrape scrape = test::parse_exposition(page);
  CHECK(scrape.problems.empty());
  CHECK(scrape.value("fedge_clients_connected") == 1);
  CHECK(scrape.value("fedge_clients_enrolled") == 1);
  CHECK(scrape.value("fedge_events_total", {{"event", "client.connected"}}) == 1);
  for (const char* event : {"coordinator.listening", "admin.listening", "run.adjusted"})
    CHECK(scrape.value("fedge_events_total", {{"event", event}}) == 1);
  CHECK(*scrape.value("fedge_tasks_in_progress") <= 1);

  const auto rounds = server::read_metrics(watched.out.path() / "results" / "metrics.jsonl");
  REQUIRE(rounds);
  const auto last = static_cast<std::size_t>(*scrape.value("fedge_last_round", {{"run", "1"}}));
  REQUIRE(last >= 3);
  REQUIRE(rounds->size() >= last);
  double up = 0;
  double down = 0;
  double updates = 0;
  for (std::size_t i = 0; i < last; ++i) {
    up += static_cast<double>((*rounds)[i].bytes_up);
    down += static_cast<double>((*rounds)[i].bytes_down);
    updates += static_cast<double>((*rounds)[i].clients_completed);
  }
  const server::RoundMetrics& round = (*rounds)[last - 1];
  CHECK(scrape.value("fedge_rounds_total") == static_cast<double>(last));
  CHECK(scrape.value("fedge_test_accuracy_ratio", {{"run", "1"}}) == round.test_accuracy);
  CHECK(scrape.value("fedge_test_loss", {{"run", "1"}}) == round.test_loss);
  CHECK(scrape.value("fedge_train_loss", {{"run", "1"}}) == round.train_loss);
  CHECK(scrape.value("fedge_received_bytes_total") == up);
  CHECK(scrape.value("fedge_sent_bytes_total") == down);
  CHECK(scrape.value("fedge_updates_accepted_total") == updates);
  CHECK(scrape.value("fedge_round_duration_seconds_sum") == doctest::Approx(round.wall_seconds));

  // Row 46: secrets and data that identify a person.
  CHECK(page.find(watched.secret) == std::string::npos);
  const auto book = server::Enrolment(watched.directory).read();
  REQUIRE(book);
  REQUIRE_FALSE(book->clients.empty());
  CHECK(page.find(to_hex(book->clients[0].key)) == std::string::npos);
  CHECK(page.find("canary-software") == std::string::npos);
  CHECK(page.find("127.0.0.1") == std::string::npos);
}

TEST_CASE("admin pages: a coordinator is alive and ready, and not ready while its directory is away") {
  const WatchedRun watched;
  const std::uint16_t port = watched.port();
  const auto ask = [&](const std::string& path) {
    HttpClient client(port);
    client.send(get(path));
    return client.read_answer();
  };
  CHECK(ask("/healthz").substr(0, 12) == "HTTP/1.1 200");
  CHECK(ask("/readyz").substr(0, 12) == "HTTP/1.1 200");
  const auto away = watched.out.path() / "away";
  std::filesystem::rename(watched.directory, away);
  const std::string answer = ask("/readyz");
  CHECK(answer.substr(0, 12) == "HTTP/1.1 503");
  CHECK(body_of(answer).find("No such file or directory") != std::string::npos);
  CHECK(ask("/healthz").substr(0, 12) == "HTTP/1.1 200");
  std::filesystem::rename(away, watched.directory);
  CHECK(ask("/readyz").substr(0, 12) == "HTTP/1.1 200");
}

TEST_CASE("row 53: strangers on the admin address do not keep rounds or other askers waiting") {
  WatchedRun watched;
  const std::uint16_t port = watched.port();
  std::vector<std::unique_ptr<HttpClient>> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(std::make_unique<HttpClient>(port));
    if (i % 4 == 1) strangers.back()->send("GET /metrics HTTP/1.1\r\nHost");
    if (i % 4 == 2) strangers.back()->send(std::string("\x16\x03\x01\0\xff", 5));
    if (i % 4 == 3) strangers.back()->send("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x'));
  }
  watched.start_client();
  watched.run_rounds(2);
  CHECK(watched.ask("/healthz").substr(0, 12) == "HTTP/1.1 200");
  CHECK(watched.ask("/metrics?again").substr(0, 12) == "HTTP/1.1 200");
  CHECK(watched.ask("/metrics/").substr(0, 12) == "HTTP/1.1 404");
}

TEST_CASE("admin pages: a run that is over ends the program, though somebody still holds a connection") {
  WatchedRun watched(2);
  HttpClient held(watched.port());
  held.send(get("/healthz"));
  CHECK(body_of(held.read_answer()) == "alive\n");
  watched.start_client();
  while (!watched.coordinator->has_ended()) watched.io.run_one_for(std::chrono::milliseconds(20));
  CHECK(watched.coordinator->wait() == 0);
  CHECK(held.read_to_end().empty());
}

TEST_CASE("admin pages: an address that is none is refused by name, before anything is served") {
  test::TemporaryDirectory data;
  test::TemporaryDirectory out;
  test::write_tiny_dataset(data);
  const test::Outcome outcome = test::run(
      "fedge-coordinator --data-dir " + (out.path() / "c").string() + " --out " +
      (out.path() / "o").string() +
      " --run " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=" + data.path().string() +
      " --set data.partition.clients=1 --set sampling.clients_per_round=1"
      " --listen 127.0.0.1:0 --admin-listen nowhere");
  CHECK(outcome.code == 2);
  CHECK(outcome.output.find("--admin-listen: 'nowhere' is not an address") != std::string::npos);
}
