// Faults that strace puts into a program's system calls.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/skip.h"

namespace fedge::test {

// Whether strace can be used; if not, the test case is skipped.
inline bool strace_works() {
  if (std::system("strace -o /dev/null true > /dev/null 2>&1") == 0) return true;
  if (std::system("command -v strace > /dev/null 2>&1") == 0)
    skip("strace may not trace programs here");
  else
    skip("strace not found", "strace");
  return false;
}

// Whether a test shall try every boundary rather than a few.
inline bool sweep_all() {
  const char* wanted = std::getenv("FEDGE_KILL_SWEEP");
  return wanted != nullptr && std::string(wanted) == "all";
}

// What to put before a program: of these calls (comma-separated) those that `fault` says fail as it says:
// "signal=KILL:when=3", "error=EIO:when=1". Each thread's calls are counted by themselves.
inline std::vector<std::string> strace(const std::string& calls, const std::string& fault) {
  return {"strace",
          "-f",
          "-qq",
          "-o",
          "/dev/null",
          "-e",
          "trace=" + calls,
          "-e",
          "inject=" + calls + ":" + fault};
}

// A call that changes the disk or makes a change durable, by its name and number.
struct Boundary {
  std::string call;
  int when = 1;
};

// What to put before a program that shall get this signal ("KILL") there.
inline std::vector<std::string> strace(const Boundary& at, const std::string& signal) {
  return strace(at.call, "signal=" + signal + ":when=" + std::to_string(at.when));
}

}  // namespace fedge::test
