// A client whose disk is full or fails.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/faults/one_client.h"

using namespace fedge;
using test::contains;
using test::LoggedProcess;
using test::OneClient;

namespace {

// A run in which the first of these calls of the client fails this way; the client's log.
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
  CHECK_MESSAGE(contains(log, "the update cannot be kept: cannot make durable"), log);
  CHECK(example.completed() == std::vector<std::size_t>{0, 1, 1});
}
