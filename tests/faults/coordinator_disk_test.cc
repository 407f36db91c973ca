// A coordinator whose disk fails, is slow, or is full.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/faults/whole_run.h"

using namespace fedge;
using test::Boundary;
using test::contains;
using test::Setting;
using test::strace;
using test::WholeRun;

namespace {

const Setting kDiskSetting{"scaffold", "[strategy]\nkind = \"scaffold\"\n", 2, 2};

}  // namespace

TEST_CASE("disk: after a write or sync that fails a coordinator stops and names the file, R3 N1, row 5") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(kDiskSetting);
  std::vector<Boundary> cases = {{"fdatasync", 1},  {"fdatasync", 6}, {"fdatasync", 9}, {"fdatasync", 11},
                                 {"fdatasync", 12}, {"fsync", 3},     {"pwrite64", 2},  {"pwrite64", 12}};
  if (test::sweep_all()) {
    cases.clear();
    for (const std::string call : {"fdatasync", "fsync", "pwrite64"})
      for (int when = 1; when <= (call == "pwrite64" ? 60 : 25); ++when) cases.push_back({call, when});
  }
  int stopped = 0;
  for (const Boundary& at : cases) {
    CAPTURE(at.call);
    CAPTURE(at.when);
    WholeRun whole(kDiskSetting);
    whole.begin(strace(at.call, "error=EIO:when=" + std::to_string(at.when)));
    const int code = whole.server->wait();
    // Errors while reading back a log's index or a repeated update may be harmless. The twelfth sync is the
    // last of the run unless two were merged.
    const bool went_well = code == 0 && (test::sweep_all() || at.when == 12);
    const std::string said = whole.server->log();
    if (!went_well) CHECK_MESSAGE(code == 1, said);
    // This error costs only the update, which changes the models (integration_federation).
    if (contains(said, "update.store_failed")) continue;
    if (went_well) {
      whole.check(expected);
      continue;
    }
    ++stopped;
    const bool clear = contains(said, "Input/output error") || contains(said, "disk I/O error");  // SQLite's
    CHECK_MESSAGE(clear, said);
    CHECK_MESSAGE(contains(whole.server->log(), whole.data().parent_path().string()), whole.server->log());
    whole.kill_clients();
    const bool goes_on = whole.go_on();
    if (contains(said, "run.start_failed") &&
        !goes_on) {  // ended before it began: nothing was promised to a client
      CHECK(whole.acknowledged().empty());
      continue;
    }
    if (goes_on) whole.start_clients();
    whole.check(expected);
  }
  if (test::sweep_all()) MESSAGE("EIO at " << cases.size() << " calls: stopped by " << stopped);
}

TEST_CASE("disk: a sync that finds no room is not tried again, N1, row 5") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(kDiskSetting);
  int of_chunks = 0;
  for (int when = 4; when <= 9; ++when) {  // some belong to the journal
    CAPTURE(when);
    WholeRun whole(kDiskSetting);
    whole.begin(strace("fdatasync", "error=ENOSPC:when=" + std::to_string(when)));
    CHECK_MESSAGE(whole.server->wait() == 1, whole.server->log());
    of_chunks += contains(whole.server->log(), "cannot sync") ? 1 : 0;
    whole.kill_clients();
    if (whole.go_on()) whole.start_clients();
    whole.check(expected);
  }
  CHECK(of_chunks > 0);
}

TEST_CASE("disk: without room for a while a coordinator waits and says so once, N1 N6, row 6") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(kDiskSetting);
  // The first two files are the initial model and its control variate; updates follow.
  for (const Boundary& at : std::vector<Boundary>{{"fallocate", 1}, {"fallocate", 3}, {"fallocate", 4}}) {
    CAPTURE(at.call);
    CAPTURE(at.when);
    WholeRun whole(kDiskSetting);
    whole.begin(strace(at.call, "error=ENOSPC:when=" + std::to_string(at.when)));
    whole.check(expected);
    CHECK_MESSAGE(contains(whole.server_log(), "disk.full"), whole.server_log());
    CHECK_FALSE(contains(whole.client_logs(), "update.refused"));
  }
}

TEST_CASE("disk: interrupted writes change nothing, N1, row 7") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(kDiskSetting);
  for (const std::string fault : {"error=EINTR:when=2+3", "error=EINTR:when=1+7"}) {
    CAPTURE(fault);
    WholeRun whole(kDiskSetting);
    whole.begin(strace("pwrite64", fault));
    whole.check(expected);
  }
}

TEST_CASE("disk: a slow one holds a run up, and nothing else, N6, row 16") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(kDiskSetting);
  WholeRun whole(kDiskSetting);
  whole.begin(strace("fdatasync", "delay_enter=2s:when=4+6"));
  whole.check(expected);
  const std::string logs = whole.client_logs();
  const std::size_t first = logs.find("client.connected");
  CHECK(logs.find("client.connected", logs.find("client.connected", first + 1) + 1) == std::string::npos);
}
