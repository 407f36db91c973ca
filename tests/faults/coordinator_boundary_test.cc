// Kills a coordinator at its N-th call that changes the disk or makes a change durable, restarts it and lets
// the run finish. FEDGE_KILL_SWEEP=all tries every N, otherwise a few.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/faults/whole_run.h"

using namespace fedge;
using test::Boundary;
using test::Setting;
using test::WholeRun;

namespace {

const Setting kBoundarySetting{"scaffold", "[strategy]\nkind = \"scaffold\"\n", 2, 2};

// Returns false if the coordinator makes no such call.
bool killed_at(const Boundary& at, const std::string& expected, const Setting& setting = kBoundarySetting) {
  INFO(at.call << " " << at.when);
  WholeRun whole(setting);
  whole.begin(test::strace(at, "KILL"));
  const bool hit = whole.server->wait() == 128 + SIGKILL;
  if (hit && whole.go_on()) whole.start_clients();  // clients that could not join have ended
  whole.check(expected);
  return hit;
}

}  // namespace

TEST_CASE("kill: at any write a coordinator goes on to the same models, files whole, N1 N2 N4, row 2") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(kBoundarySetting);
  if (!test::sweep_all()) {
    const std::vector<Boundary> few = {{"pwrite64", 3}, {"pwrite64", 20}, {"fdatasync", 5},
                                       {"fsync", 2},    {"fsync", 6},     {"write", 9},
                                       {"rename", 2},   {"unlink", 1},    {"fallocate", 2}};
    for (const Boundary& at : few)
      CHECK_MESSAGE(killed_at(at, expected), "no such boundary: " << at.call << " " << at.when);
    return;
  }
  for (const std::string call :
       {"pwrite64", "write", "fsync", "fdatasync", "rename", "unlink", "ftruncate", "fallocate"}) {
    int when = 1;
    while (killed_at({call, when}, expected)) ++when;
    MESSAGE("KILL at " << call << ": " << when - 1 << " boundaries");
  }
}

TEST_CASE(
    "kill: at any write a coordinator that trains a half of the model goes on to the same models, N1 N4, row "
    "2") {
  if (!test::strace_works()) return;
  const Setting split = test::split_setting(2, 2);
  const std::string expected = test::undisturbed(split);
  const std::vector<Boundary> few = {
      {"fsync", 8}, {"fsync", 10}, {"rename", 4}, {"rename", 5}, {"pwrite64", 20}};
  if (!test::sweep_all()) {
    for (const Boundary& at : few)
      CHECK_MESSAGE(killed_at(at, expected, split), "no such boundary: " << at.call << " " << at.when);
    return;
  }
  for (const std::string call : {"pwrite64", "write", "fsync", "fdatasync", "rename", "unlink"}) {
    int when = 1;
    while (killed_at({call, when}, expected, split)) ++when;
    MESSAGE("KILL at " << call << ": " << when - 1 << " boundaries of split training");
  }
}

TEST_CASE("kill: once the end of its run is kept a coordinator has left nothing to do, N1 N2 N4, row 2") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(kBoundarySetting);
  WholeRun whole(kBoundarySetting);
  // The last step closes the database, which removes its write-ahead log.
  std::vector<std::string> before = test::strace("unlink", "signal=KILL");
  before.insert(before.end(), {"-P", (whole.data() / "runs.db-wal").string()});
  whole.begin(before);
  CHECK(whole.server->wait() == 128 + SIGKILL);
  CHECK(std::filesystem::exists(whole.data() / "runs.db-wal"));
  CHECK_FALSE(whole.go_on());
  whole.check(expected);
}
