// Skips a test case on a machine that lacks something it needs. A skipped test case does not count as passed.
// If a program skipped every test case that it ran, it exits with kSkippedExit, and CTest reports "Skipped".
// Defined in tests/support/main.cc. Not thread-safe: call from the test case's own thread.
#pragma once

#include <string>

namespace fedge::test {

inline constexpr int kSkippedExit = 77;  // also in tests/CMakeLists.txt

// Marks the running test case as skipped and prints "skipped: REASON" with the Debian package that would
// help, if any. The caller must then return.
void skip(const std::string& reason, const std::string& package = "");

}  // namespace fedge::test
