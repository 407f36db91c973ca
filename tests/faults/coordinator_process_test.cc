// Signals to a coordinator in the middle of a run, a second coordinator in its directory, and a calendar that
// jumps.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/faults/faketime.h"
#include "tests/faults/whole_run.h"

using namespace fedge;
using test::contains;
using test::LoggedProcess;
using test::Outcome;
using test::Setting;
using test::WholeRun;

namespace {

// Enough rounds for a fault in the middle.
const Setting kProcessSetting{"fedavg", "", 2, 20};

}  // namespace

TEST_CASE("signals: told to end in any phase a coordinator does within 10 s, and the run goes on, row 64") {
  const std::string expected = test::undisturbed(kProcessSetting);
  for (const char* phase : {"client.connected", "round.started round=2", "round.closed round=2"}) {
    CAPTURE(std::string(phase));
    WholeRun whole(kProcessSetting);
    whole.begin_well();
    REQUIRE(whole.server->wait_for(phase));
    whole.server->signal(SIGTERM);
    CHECK(whole.server->ends_within(10'000));
    CHECK(whole.server->wait() == 0);
    CHECK(contains(whole.server->log(), "the same command continues the run"));
    whole.kill_clients();  // the coordinator told them to stay away for a while
    REQUIRE(whole.go_on());
    whole.start_clients();
    whole.check(expected);
  }
}

TEST_CASE("signals: a hangup, a log that nobody reads, and a stop and go leave a run as it was, row 64") {
  const std::string expected = test::undisturbed(kProcessSetting);
  for (const int number : {SIGHUP, SIGPIPE}) {
    WholeRun whole(kProcessSetting);
    whole.begin_well();
    REQUIRE(whole.server->wait_for("round.started round=2"));
    whole.server->signal(number);
    whole.check(expected);
  }
  WholeRun stopped(kProcessSetting);
  stopped.begin_well();
  REQUIRE(stopped.server->wait_for("round.started round=2"));
  stopped.server->stop();
  CHECK_FALSE(stopped.server->ends_within(500));
  stopped.server->signal(SIGCONT);
  stopped.check(expected);
}

TEST_CASE(
    "lock: a second coordinator of a data directory says who has it, a dead one's lock is free, row 11") {
  const std::string expected = test::undisturbed(kProcessSetting);
  WholeRun whole(kProcessSetting);
  whole.begin_well();
  whole.server->stop();
  LoggedProcess second(whole.command(), whole.log_of("second"));
  CHECK(second.wait() == 1);
  CHECK_MESSAGE(contains(second.log(), whole.data().string() + " is in use by another process"),
                second.log());
  whole.server->kill();
  CHECK(std::filesystem::exists(whole.data() / "lock"));
  REQUIRE(whole.go_on());
  whole.check(expected);
}

TEST_CASE("clock: a calendar that jumps by hours and to 2040 changes nothing of a run, row 15") {
  WholeRun whole(kProcessSetting);
  const auto calendar = whole.log_of("calendar");
  const auto jumping = test::faketime("FAKETIME_TIMESTAMP_FILE=" + calendar.string());
  if (!jumping) return;
  const std::string expected = test::undisturbed(kProcessSetting);
  const auto set = [&](const std::string& to) { REQUIRE(write_file_atomic(calendar, to + "\n")); };
  set("+0");
  whole.begin(*jumping);
  REQUIRE(whole.server->wait_for("round.started round=1"));
  set("+1h");
  REQUIRE(whole.server->wait_for("round.started round=2"));
  set("-1h");
  REQUIRE(whole.server->wait_for("round.started round=3"));
  set("@2040-01-01 00:00:00");
  whole.check(expected);
  CHECK_MESSAGE(contains(whole.server_log(), "2040-01-01T"), whole.server_log());  // the calendar has jumped
  CHECK_FALSE(contains(whole.server_log(), "reason=\"out of time\""));
  for (const auto& round : whole.rounds()) CHECK(round.wall_seconds < 60);
}

TEST_CASE("clock: whether a join token has expired is judged by the calendar, row 15") {
  const auto in_2040 = test::faketime("FAKETIME=@2040-01-01 00:00:00");
  if (!in_2040) return;
  WholeRun whole(kProcessSetting);
  whole.begin(*in_2040);
  CHECK(whole.clients[0]->wait() == 1);
  CHECK_MESSAGE(contains(whole.clients[0]->log(), "the join token has expired"), whole.clients[0]->log());
}
