#include "core/platform/processes.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "core/platform/files.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;

TEST_CASE("processes: their output goes to the file, and how they ended is reported by name") {
  const learn::test::TemporaryDirectory place;
  const auto log = place.path() / "log";
  ChildProcesses processes;
  REQUIRE(processes.start("talker", {"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, log));
  const auto ended = processes.wait({});
  CHECK(ended.name == "talker");
  CHECK(ended.failed());
  CHECK(ended.describe() == "talker failed with exit code 3");
  CHECK(*read_file(log, 100) == "out\nerr\n");
  REQUIRE(processes.start("victim", {"/bin/sh", "-c", "kill -9 $$"}));
  CHECK(processes.wait({}).describe() == "victim was killed by signal 9");
  CHECK(processes.running() == 0);
}

TEST_CASE("processes: waiting ends when it is interrupted, and what ignores the request to end is killed") {
  const learn::test::TemporaryDirectory place;
  ChildProcesses processes;
  const std::string ready = (place.path() / "ready").string();
  REQUIRE(processes.start("deaf",
                          {"/bin/sh", "-c", "trap '' TERM; touch " + ready + "; exec tail -f /dev/null"}));
  const auto began = [&] { return std::filesystem::exists(ready); };
  CHECK(processes.wait(began).name.empty());
  CHECK(processes.running() == 1);
  processes.stop(std::chrono::milliseconds(50));
  CHECK(processes.running() == 0);
}

TEST_CASE("processes: how a child ended is known also if this process was started with SIGCHLD ignored") {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  {
    ChildProcesses processes;
    REQUIRE(processes.start("child", {"/bin/sh", "-c", "exit 5"}));
    CHECK(processes.wait({}).describe() == "child failed with exit code 5");
  }
  ::signal(SIGCHLD, before);
}

TEST_CASE("processes: a program that does not exist fails like one that ends at once") {
  ChildProcesses processes;
  const learn::test::TemporaryDirectory place;
  REQUIRE(processes.start("nobody", {"/nonexistent/program"}, place.path() / "log"));
  CHECK(processes.wait({}).describe() == "nobody failed with exit code 127");
}
