// A client whose disk is full, fails or is slow, or whose calendar jumps.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/faults/faketime.h"
#include "tests/faults/one_client.h"

using namespace fedge;
using test::contains;
using test::LoggedProcess;
using test::OneClient;

namespace {

// Runs a client whose first of these calls fails with `error`; returns its log.
std::string log_with(OneClient& example, const std::string& calls, const std::string& error) {
  std::string log;
  example.run_with([&] {
    LoggedProcess client(example.client(test::strace(calls, "error=" + error + ":when=1")), example.log);
    CHECK_MESSAGE(client.wait() == 0, client.log());
    log = client.log();
  });
  return log;
}

}  // namespace

TEST_CASE(
    "disk: without room for the model the task fails with the reason, and the next one goes on, row 6") {
  if (!test::strace_works()) return;
  OneClient example(test::kFeedback);
  const std::string log = log_with(example, "fallocate", "ENOSPC");
  CHECK_MESSAGE(contains(log, "task.failed round=1"), log);
  CHECK_MESSAGE(contains(log, "cannot reserve 31400 bytes for " + (example.state / "chunks").string()), log);
  CHECK(contains(log, "No space left on device"));
  CHECK(example.completed() == std::vector<std::size_t>{0, 1, 1});
}

TEST_CASE("disk: an update that cannot be made durable is not offered, and the next one goes on, row 5") {
  if (!test::strace_works()) return;
  OneClient example(test::kFeedback);
  const std::string log = log_with(example, "fdatasync", "EIO");
  CHECK_MESSAGE(contains(log, "task.failed round=1"), log);
  CHECK_MESSAGE(contains(log, "cannot save the update: cannot sync"), log);
  CHECK(example.completed() == std::vector<std::size_t>{0, 1, 1});
}

TEST_CASE("disk: a slow one holds a client up, its link lives, and the models are the same, N6, row 16") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(test::kFeedback);
  OneClient example(test::kFeedback);
  const std::string hashes = example.run_with([&] {
    LoggedProcess client(example.client(test::strace("fdatasync,fsync", "delay_enter=300ms")), example.log);
    CHECK_MESSAGE(client.wait() == 0, client.log());
    const std::string log = client.log();
    CHECK_MESSAGE(log.find("client.connected") == log.rfind("client.connected"), log);
    CHECK_FALSE(contains(log, "task.failed"));
  });
  CHECK(hashes == expected);
}

TEST_CASE("clock: a client whose calendar jumps by hours and to 2040 trains as ever, N6, row 15") {
  const test::TemporaryDirectory place;
  const auto calendar = place.path() / "calendar";
  const auto jumping = test::faketime("FAKETIME_TIMESTAMP_FILE=" + calendar.string());
  if (!jumping) return;
  const std::string expected = test::undisturbed(test::kFeedback);
  OneClient example(test::kFeedback);
  const auto set = [&](const std::string& to) { REQUIRE(write_file_atomic(calendar, to + "\n")); };
  set("+0");
  const std::string hashes = example.run_with([&] {
    LoggedProcess client(example.client(*jumping), example.log);
    REQUIRE_MESSAGE(client.wait_for("client.connected"), client.log());
    set("-1h");
    REQUIRE_MESSAGE(client.wait_for("update.accepted"), client.log());
    set("@2040-01-01 00:00:00");
    CHECK_MESSAGE(client.wait() == 0, client.log());
    CHECK_MESSAGE(contains(client.log(), "2040-01-01T"), client.log());  // the calendar has jumped
    CHECK(client.log().find("client.connected") == client.log().rfind("client.connected"));
  });
  CHECK(hashes == expected);
}
