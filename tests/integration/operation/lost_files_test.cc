// Files of the coordinator that are missing, damaged or replaced while it runs: no daemon ends because of
// this.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "client/diagnosis/status_file.h"
#include "server/audit_log.h"
#include "tests/integration/federation.h"

using namespace fedge;
using test::Federation;

namespace {

// A daemon that its owner has started permanently.
struct StayingDaemon {
  Federation& f;
  std::vector<std::string> said;
  bool finished = false;
  std::unique_ptr<client::Daemon> daemon;

  StayingDaemon(Federation& federation, const std::filesystem::path& state) : f(federation) {
    // A daemon that was just stopped holds its directory until its last callback has ended.
    f.run_until([&] {
      if (daemon) return true;
      auto made = client::Daemon::create(
          f.io, {.state_directory = state,
                 .software = "test",
                 .backoff = {.first = seconds(0.01), .longest = seconds(0.05), .unknown = seconds(0.01)},
                 .on_event = [this](const Event& event) { said.push_back(to_string(event)); }});
      if (made) daemon = std::move(*made);
      return made.has_value();
    });
    daemon->on_finished([this] { finished = true; });
    daemon->start();
  }
  std::size_t count(const std::string& text) const { return Federation::count(said, text); }
  void stop() {
    daemon->stop();
    f.run_until([&] { return finished; });
    CHECK_FALSE(daemon->failure());
    daemon.reset();
  }
};

// Counts these entries in the coordinator's audit log.
std::size_t recorded(const Federation& f, const std::string& action, const std::string& subject) {
  std::size_t entries = 0;
  (void)server::AuditLog(f.directory.path() / "coordinator").verify("", [&](const server::AuditEntry& entry) {
    entries += entry.event.action == action && entry.event.subject == subject ? 1U : 0U;
  });
  return entries;
}

}  // namespace

TEST_CASE("an enrolment book that is away, cut, foreign or on an unmounted disk for a while ends no daemon") {
  Federation f(2, {"run.rounds=1000", "run.round_deadline=3600"});
  const auto data = f.directory.path() / "coordinator";
  const auto book = data / "enrolment.db";
  const auto away = f.directory.path() / "away";
  StayingDaemon one(f, f.enrol("one"));
  StayingDaemon two(f, f.enrol("two"));
  f.run_until([&] { return f.rounds.size() >= 2; });
  const bool directory = [&] {
    bool whole = false;
    SUBCASE("away") { std::filesystem::rename(book, away); }
    SUBCASE("cut short") {
      std::filesystem::rename(book, away);
      std::filesystem::copy_file(away, book);
      std::filesystem::resize_file(book, 5000);
    }
    SUBCASE("another coordinator's") {
      std::filesystem::rename(book, away);
      std::filesystem::create_directory(f.directory.path() / "other");
      REQUIRE(server::Enrolment(f.directory.path() / "other").create_token(0, std::chrono::hours(1)));
      std::filesystem::copy_file(f.directory.path() / "other" / "enrolment.db", book);
    }
    SUBCASE("on a disk that is not mounted") {
      std::filesystem::rename(data, away);
      std::filesystem::create_directory(data);
      whole = true;
    }
    return whole;
  }();
  if (!directory) {
    f.run_until([&] { return f.reported("enrolment.unavailable"); });
    // Meanwhile the last version that was read decides about admission.
    one.stop();
    const std::size_t arrived = f.count("client.connected");
    StayingDaemon again(f, f.directory.path() / "one");
    f.run_until([&] { return f.count("client.connected") > arrived; });
    std::filesystem::remove(book);
    std::filesystem::rename(away, book);
    f.run_until([&] { return f.reported("enrolment.available"); });
    CHECK(again.count("client.revoked") == 0);
    again.stop();
  } else {
    // The runs are missing as well: the coordinator ends, and its clients wait for it.
    f.run_until([&] { return f.coordinator->failure().has_value(); });
    f.run_until(
        [&] { return one.count("client.disconnected") >= 3 && two.count("client.disconnected") >= 3; });
    CHECK_FALSE(one.finished);
    CHECK(one.count("client.revoked") == 0);
    one.stop();
    std::filesystem::remove_all(data);
    std::filesystem::rename(away, data);
  }
  CHECK_FALSE(two.finished);
  CHECK(two.count("client.revoked") == 0);
  two.stop();
}

TEST_CASE("a daemon whose key the coordinator does not know asks for ever, and is let in once it is known") {
  Federation f(1, {});
  const auto state = f.directory.path() / "stranger";
  const auto key = client::open_node_key(state);
  REQUIRE(client::write_membership(state, {{f.coordinator->address()}, f.coordinator_key, ClientId(0)}));
  StayingDaemon stranger(f, state);
  f.run_until([&] { return stranger.count("this client is not enrolled at this coordinator") >= 3; });
  CHECK_FALSE(stranger.finished);
  REQUIRE(f.enrolment().add(key->public_key(), 0));
  f.run_until([&] { return stranger.count("client.connected") == 1; });
  stranger.stop();
}

TEST_CASE("a daemon that is revoked says so and waits for its owner, and does not ask again") {
  Federation f(2, {"run.wait_for_clients=1", "run.rounds=1000", "sampling.clients_per_round=1"});
  StayingDaemon revoked(f, f.enrol("revoked"));
  StayingDaemon other(f, f.enrol("other"));
  f.run_until([&] { return revoked.count("client.connected") == 1 && other.count("client.connected") == 1; });
  REQUIRE(f.enrolment().revoke(ClientId(0)));
  f.run_until([&] { return revoked.count("client.revoked") == 1; });
  CHECK(revoked.count("reason=\"this client's key has been revoked\"") == 1);
  const std::size_t rounds = f.rounds.size();
  f.run_until([&] { return f.rounds.size() > rounds + 3; });  // the other client continues
  CHECK_FALSE(revoked.finished);
  CHECK(revoked.count("client.disconnected") == 0);
  CHECK(f.count("client.refused") == 1);  // its link was closed, and it has not reconnected
  revoked.stop();
  const auto status = client::read_status(f.directory.path() / "revoked");
  REQUIRE(status);
  CHECK(status->link_reason ==
        "this client's key has been revoked; stop this daemon, then join with a new "
        "token and an empty state directory");
  // The same holds when a supervisor restarts the daemon.
  StayingDaemon again(f, f.directory.path() / "revoked");
  f.run_until([&] { return again.count("client.revoked") == 1; });
  CHECK_FALSE(again.finished);
  again.stop();
  other.stop();
}

TEST_CASE(
    "a coordinator whose runs.db was removed or replaced acknowledges nothing more, and ends with the "
    "reason") {
  Federation f(1, {"run.rounds=100000"});
  f.add_client();
  f.run_until([&] { return f.rounds.size() >= 2; });
  const auto file = f.directory.path() / "coordinator" / "runs.db";
  std::filesystem::rename(file, file.string() + ".away");
  std::string wanted = "was removed";
  SUBCASE("removed") {}
  SUBCASE("replaced by a copy") {
    std::filesystem::copy_file(file.string() + ".away", file);
    wanted = "was replaced";
  }
  f.run_until([&] { return f.coordinator->failure().has_value(); });
  CHECK_MESSAGE(f.coordinator->failure()->message.find(file.string() + " " + wanted) != std::string::npos,
                f.coordinator->failure()->message);
  f.stop_client(0);
}

TEST_CASE("two devices with one key raise an alarm in log and audit log, and one that reconnects does not") {
  Federation f(1, {"run.rounds=100000"});
  const auto state = f.enrol("one");
  {
    StayingDaemon one(f, state);
    f.run_until([&] { return one.count("client.connected") == 1; });
    one.stop();
  }
  StayingDaemon again(f, state);
  f.run_until([&] { return again.count("client.connected") == 1; });
  CHECK_FALSE(f.reported("key.cloned"));
  std::filesystem::copy(state, f.directory.path() / "copy", std::filesystem::copy_options::recursive);
  StayingDaemon copy(f, f.directory.path() / "copy");
  f.run_until(
      [&] { return f.reported("key.cloned client=0") && recorded(f, "key.cloned", "client 0") == 1; });
  again.stop();
  copy.stop();
}

TEST_CASE("a lost noise.key of a private run that had begun raises an alarm in log and audit log") {
  const std::vector<std::string> settings = {"run.rounds=1000", "differential_privacy.kind=central",
                                             "differential_privacy.noise_multiplier=1.0"};
  Federation f(1, settings);
  f.add_client();
  f.run_until([&] { return f.rounds.size() >= 2; });
  const auto data = f.directory.path() / "coordinator";
  f.restart_coordinator();
  CHECK(recorded(f, "noise.key_lost", "run 1") == 0);
  CHECK_FALSE(f.reported("noise.key_lost"));
  std::filesystem::remove(data / "noise.key");
  f.restart_coordinator();
  CHECK(recorded(f, "noise.key_lost", "run 1") == 1);
  CHECK(f.reported("noise.key_lost"));
  f.stop_client(0);
}
