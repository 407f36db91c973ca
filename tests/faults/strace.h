// Faults that strace injects into a program's system calls.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/skip.h"

namespace fedge::test {

// Returns whether strace works; if not, skips the test case.
inline bool strace_works() {
  if (std::system("strace -o /dev/null true > /dev/null 2>&1") == 0) return true;
  if (std::system("command -v strace > /dev/null 2>&1") == 0)
    skip("strace may not trace programs here");
  else
    skip("strace not found", "strace");
  return false;
}

// Whether a test tries every boundary instead of a few.
inline bool sweep_all() {
  const char* wanted = std::getenv("FEDGE_KILL_SWEEP");
  return wanted != nullptr && std::string(wanted) == "all";
}

// Returns the prefix of a command in which `fault` applies to these calls (comma-separated):
// "signal=KILL:when=3", "error=EIO:when=1". strace counts the calls of each thread separately.
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

// A call that changes the disk or makes a change durable: its name and number.
struct Boundary {
  std::string call;
  int when = 1;
};

// Returns the prefix of a command that gets this signal ("KILL") at the boundary.
inline std::vector<std::string> strace(const Boundary& at, const std::string& signal) {
  return strace(at.call, "signal=" + signal + ":when=" + std::to_string(at.when));
}

}  // namespace fedge::test
