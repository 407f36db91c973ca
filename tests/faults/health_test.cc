// fedge-client status and doctor as a user runs them.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/faults/one_client.h"

using namespace fedge;
using test::contains;
using test::LoggedProcess;
using test::OneClient;
using test::Outcome;

namespace {

// Returns the line of the table that begins with this text.
std::string line(const std::string& output, const std::string& begin) {
  const auto at = output.find(begin);
  if (at == std::string::npos) return "";
  return output.substr(at, output.find('\n', at) - at);
}

}  // namespace

TEST_CASE("doctor: says of each step whether it is well, and the exit code says whether all are") {
  OneClient example("");
  const std::string program = "fedge-client --state-dir " + example.state.string();
  example.run_with([&] {
    const Outcome well = test::run(program + " doctor");
    MESSAGE(well.output);
    CHECK(well.code == 0);
    for (const char* step : {"state directory", "key", "membership", "clock", "disk", "address", "tcp", "tls",
                             "hello", "round trip"})
      CHECK_MESSAGE(line(well.output, std::string("ok    ") + step) != "", step);
    CHECK(contains(line(well.output, "ok    hello"), "accepted as client 0"));
    const Outcome json = test::run(program + " doctor --format json");
    const auto document = nlohmann::json::parse(json.output, nullptr, false);
    REQUIRE_MESSAGE(document.is_object(), json.output);
    CHECK(document["healthy"] == true);
    CHECK(document["checks"].size() == 10);

    const auto key = example.state / "node.key";
    REQUIRE(::chmod(key.c_str(), 0644) == 0);
    const Outcome open = test::run(program + " doctor");
    MESSAGE(open.output);
    CHECK(open.code == 1);
    CHECK(line(open.output, "FAIL  key") != "");
    REQUIRE(::chmod(key.c_str(), 0600) == 0);

    LoggedProcess client(example.client(), example.log);
    CHECK_MESSAGE(client.wait() == 0, client.log());
  });
  const Outcome alone = test::run(program + " doctor");  // the coordinator has ended
  MESSAGE(alone.output);
  CHECK(alone.code == 1);
  CHECK(contains(line(alone.output, "FAIL  tcp"), "is not reachable: Connection refused"));
  CHECK(contains(line(alone.output, "skip  tls"), "needs TCP"));
  const Outcome nobody = test::run("fedge-client --state-dir /nonexistent doctor");
  CHECK(nobody.code == 1);
  CHECK(contains(line(nobody.output, "FAIL  state directory"),
                 "fedge-client --state-dir /nonexistent join TOKEN"));
}

TEST_CASE("status: says what the daemon is doing, and what it did when it has ended") {
  OneClient example("");
  const std::string program = "fedge-client --state-dir " + example.state.string();
  example.run_with([&] {
    CHECK(line(test::run(program + " status").output, "daemon") == "daemon        not running");
    LoggedProcess client(example.client(), example.log);
    REQUIRE(client.wait_for("client.connected"));
    client.stop();
    const Outcome running = test::run(program + " status");
    MESSAGE(running.output);
    CHECK(running.code == 0);
    CHECK(!contains(line(running.output, "daemon"), "not running"));
    // If the daemon reports no connection, doctor does not claim that the client can take part.
    const auto file = example.state / "status.json";
    auto status = nlohmann::json::parse(*read_file(file, 1 << 20), nullptr, false);
    REQUIRE(status.is_object());
    status["link"] = "offline";
    REQUIRE(write_file_atomic(file, status.dump()));
    const Outcome offline = test::run(program + " doctor");
    MESSAGE(offline.output);
    CHECK(offline.code == 1);
    CHECK(contains(line(offline.output, "FAIL  hello"), "the running daemon is not connected"));
    client.signal(SIGCONT);
    CHECK_MESSAGE(client.wait() == 0, client.log());
  });
  const Outcome ended = test::run(program + " status");
  MESSAGE(ended.output);
  CHECK(line(ended.output, "daemon").starts_with("daemon        not running; last seen "));
  CHECK(line(ended.output, "pending") == "pending       none");
  const auto json =
      nlohmann::json::parse(test::run(program + " status --format json").output, nullptr, false);
  REQUIRE(json.is_object());
  CHECK(json["running"] == false);
  CHECK(json["daemon"]["accepted"] == 3);
  CHECK(json["daemon"]["last_update"]["round"] == 3);
  CHECK(json["daemon"]["last_update"]["verdict"] == "accepted");
  // A status file that is damaged or was written by another program is ignored.
  REQUIRE(write_file_atomic(example.state / "status.json", "{\"link\": 7}"));
  CHECK(line(test::run(program + " status").output, "daemon") == "daemon        not running");
}
