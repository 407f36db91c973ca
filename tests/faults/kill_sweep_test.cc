// A client that is killed, or told to end, at its N-th write to the disk, started again, and left to finish:
// the run must come to the very models of an undisturbed one. FEDGE_KILL_SWEEP=all tries every N, else a few.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/faults/one_client.h"

using namespace fedge;
using test::OneClient;
using test::Process;

namespace {

bool sweep_all() {
  const char* wanted = std::getenv("FEDGE_KILL_SWEEP");
  return wanted != nullptr && std::string(wanted) == "all";
}

struct Fault {
  const char* strategy;
  std::string calls;
  std::string signal;  // KILL or TERM
};

// Each thread's calls are counted by themselves: the first that comes to `when` is hit. False if none did.
bool run_with_fault(const Fault& fault, int when, const std::string& expected) {
  OneClient example(fault.strategy);
  bool hit = false;
  const std::string inject =
      "inject=" + fault.calls + ":signal=" + fault.signal + ":when=" + std::to_string(when);
  std::string log;
  const std::string hashes = example.run_with([&] {
    Process first(example.client(
        {"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + fault.calls, "-e", inject}));
    const int code = first.wait();
    log = first.log();
    const bool finished = log.find("run.ended") != std::string::npos;
    hit = fault.signal == "KILL" ? code == 128 + SIGKILL : !finished;
    if (fault.signal == "TERM") CHECK_MESSAGE(code == 0, log);
    if (finished) return;
    Process second(example.client());
    const int end = second.wait();
    log += second.log();
    CHECK_MESSAGE(end == 0, log);
  });
  CHECK_MESSAGE(hashes == expected, fault.signal << " at call " << when << "\n" << log);
  return hit;
}

void sweep(const Fault& fault, const std::vector<int>& few) {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(fault.strategy);
  if (!sweep_all()) {
    for (const int when : few) CHECK(run_with_fault(fault, when, expected));
    return;
  }
  int when = 1;
  while (run_with_fault(fault, when, expected)) ++when;
  MESSAGE(fault.signal << ": " << when - 1 << " boundaries");
  CHECK(when > few.back());
}

// What makes something durable, and what it consists of.
const std::string kWrites = "fsync,fdatasync,rename,renameat2,pwrite64";

}  // namespace

TEST_CASE("kill: at any write a client with a control variate goes on to the same models, rows 2 and 19") {
  sweep({test::kScaffold, kWrites, "KILL"}, {3, 13, 19, 21, 24});
}

TEST_CASE("kill: at any write a client with error feedback goes on to the same models, rows 2 and 19") {
  sweep({test::kFeedback, kWrites, "KILL"}, {5, 12, 14});
}

TEST_CASE(
    "kill: in the middle of a file or of a line of its log, a client goes on to the same models, row 7") {
  sweep({test::kFeedback, "write", "KILL"}, {2, 6, 9});
}

TEST_CASE("kill: told to end at any write, a client ends well and goes on to the same models, row 64") {
  sweep({test::kScaffold, kWrites, "TERM"}, {2, 12, 20});
}
