// Starts one of Fedge's programs as a user does, and waits for its end.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace fedge::test {

struct Outcome {
  int code = -1;
  std::string output;  // standard output and error
};

inline Outcome run_command(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

inline Outcome run(const std::string& arguments) {
  return run_command(std::string(FEDGE_BINARY_DIR) + "/" + arguments);
}

}  // namespace fedge::test
