// Kills or stops a client at its N-th write to the disk, restarts it and lets the run finish: its models must
// equal those of an undisturbed run. FEDGE_KILL_SWEEP=all tries every N, otherwise a few.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/faults/one_client.h"

using namespace fedge;
using test::Boundary;
using test::LoggedProcess;
using test::OneClient;
using test::sweep_all;

namespace {

struct Fault {
  const char* strategy;
  std::string signal;  // KILL or TERM
};

// Returns false if no thread reached the boundary. `ended_well` counts the processes that ended by
// themselves.
bool run_with_fault(const Fault& fault, const Boundary& at, const std::string& expected, int& ended_well) {
  OneClient example(fault.strategy);
  bool hit = false;
  std::string log;
  const std::string hashes = example.run_with([&] {
    LoggedProcess first(example.client(test::strace(at, fault.signal)), example.log);
    const int code = first.wait();
    log = first.log();
    const bool finished = test::contains(log, "run.ended");
    hit = fault.signal == "KILL" ? code == 128 + SIGKILL : !finished;
    // Some of all boundaries come before the client handles signals. At others, a second thread reaches its
    // own call with this number while the client ends: a second signal ends it at once.
    if (fault.signal == "TERM") CHECK_MESSAGE((code == 0 || code == 128 + SIGTERM), log);
    ended_well += code == 0 && !finished ? 1 : 0;
    if (finished) return;
    example.last = std::make_unique<LoggedProcess>(example.client(), example.log);
  });
  if (example.last) log += example.last->log();
  CHECK_MESSAGE(hashes == expected, fault.signal << " at " << at.call << " " << at.when << "\n" << log);
  return hit;
}

void sweep(const Fault& fault, const std::vector<Boundary>& few) {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(fault.strategy);
  int ended_well = 0;
  if (!sweep_all()) {
    for (const Boundary& at : few)
      CHECK_MESSAGE(run_with_fault(fault, at, expected, ended_well),
                    "no such boundary: " << at.call << " " << at.when);
    if (fault.signal == "TERM") CHECK(ended_well > 0);
    return;
  }
  // Calls that change the disk, and calls that make a change durable.
  for (const std::string call : {"pwrite64", "write", "fsync", "fdatasync", "rename", "unlink"}) {
    int when = 1;
    while (run_with_fault(fault, {call, when}, expected, ended_well)) ++when;
    MESSAGE(fault.signal << " at " << call << ": " << when - 1 << " boundaries");
  }
}

}  // namespace

TEST_CASE("kill: at any write a client with a control variate goes on to the same models, rows 2 and 19") {
  sweep({test::kScaffold, "KILL"},
        {{"pwrite64", 4}, {"pwrite64", 13}, {"fsync", 3}, {"fsync", 8}, {"rename", 3}, {"fdatasync", 2}});
}

TEST_CASE("kill: at any write a client with error feedback goes on to the same models, rows 2, 7 and 19") {
  sweep({test::kFeedback, "KILL"},
        {{"fsync", 4}, {"rename", 3}, {"write", 6}, {"fdatasync", 3}, {"unlink", 2}});
}

TEST_CASE("kill: at any write a client that trains for the next round goes on to the same models, row 2") {
  sweep({test::kOverlap, "KILL"},
        {{"fsync", 4}, {"rename", 2}, {"rename", 3}, {"pwrite64", 5}, {"fdatasync", 3}, {"unlink", 2}});
}

TEST_CASE("kill: at any write a client of split training goes on to the same models, row 2") {
  sweep({test::kSplitClient, "KILL"},
        {{"fsync", 4}, {"rename", 2}, {"rename", 3}, {"pwrite64", 5}, {"fdatasync", 3}});
}

TEST_CASE("kill: told to end at any write, a client ends well and goes on to the same models, row 64") {
  sweep({test::kScaffold, "TERM"}, {{"fdatasync", 1}, {"rename", 2}, {"pwrite64", 6}});
}
