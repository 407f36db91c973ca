// Signals to a client in the middle of a run.
#include <doctest/doctest.h>

#include <string>

#include "tests/faults/one_client.h"

using namespace fedge;
using test::OneClient;
using test::Process;

TEST_CASE("signals: a client that was stopped goes on where it was, row 64") {
  const std::string expected = test::undisturbed(test::kScaffold);
  for (const char* moment : {"client.connected", "update.accepted"}) {
    OneClient example(test::kScaffold);
    const std::string hashes = example.run_with([&] {
      Process client(example.client());
      REQUIRE(client.read_until(moment));
      client.signal(SIGSTOP);
      client.wait_until_stopped();
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
    Process client(example.client());
    REQUIRE(client.read_until("client.connected"));
    client.close_errors();  // what it writes next is a SIGPIPE
    CHECK(client.wait() == 0);
  });
  CHECK(hashes == expected);
}

TEST_CASE("signals: a client told to end while its update waits for a verdict offers it again, row 19") {
  const std::string expected = test::undisturbed(test::kFeedback);
  OneClient example(test::kFeedback);
  const std::string hashes = example.run_with([&] {
    {
      Process client(example.client());
      REQUIRE(client.read_until("update.accepted"));
      client.signal(SIGTERM);
      CHECK_MESSAGE(client.wait() == 0, client.log());
    }
    Process again(example.client());
    CHECK_MESSAGE(again.wait() == 0, again.log());
  });
  CHECK(hashes == expected);
}
