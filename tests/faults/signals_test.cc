// Signals to a client in the middle of a run.
#include <doctest/doctest.h>

#include <string>

#include "tests/faults/one_client.h"

using namespace fedge;
using test::LoggedProcess;
using test::OneClient;

TEST_CASE("signals: a client that was stopped goes on where it was, row 64") {
  const std::string expected = test::undisturbed(test::kScaffold);
  for (const char* moment : {"client.connected", "update.accepted"}) {
    OneClient example(test::kScaffold);
    const std::string hashes = example.run_with([&] {
      LoggedProcess client(example.client(), example.log);
      REQUIRE(client.wait_for(moment));
      client.stop();
      client.signal(SIGCONT);
      CHECK_MESSAGE(client.wait() == 0, client.log());
    });
    CHECK(hashes == expected);
  }
}

TEST_CASE("signals: a client whose log nobody reads any more goes on, row 64") {
  const std::string expected = test::undisturbed(test::kScaffold);
  OneClient example(test::kScaffold);
  const std::string hashes = example.run_with([&] {
    // After this line, writing to the log raises SIGPIPE. pipefail passes the client's exit code on.
    LoggedProcess client(
        example.client({"bash", "-o", "pipefail", "-c", "\"$@\" 2>&1 | sed /client.connected/q", "bash"}),
        example.log);
    CHECK(client.wait() == 0);
    CHECK(test::contains(client.log(), "client.connected"));
    CHECK_FALSE(test::contains(client.log(), "run.ended"));
  });
  CHECK(hashes == expected);
}

TEST_CASE("signals: a client told to end while its update waits for a verdict offers it again, row 19") {
  const std::string expected = test::undisturbed(test::kFeedback);
  OneClient example(test::kFeedback);
  const std::string hashes = example.run_with([&] {
    {
      LoggedProcess client(example.client(), example.log);
      REQUIRE(client.wait_for("update.accepted"));
      client.signal(SIGTERM);
      CHECK_MESSAGE(client.wait() == 0, client.log());
    }
    LoggedProcess again(example.client(), example.log);
    CHECK_MESSAGE(again.wait() == 0, again.log());
  });
  CHECK(hashes == expected);
}
