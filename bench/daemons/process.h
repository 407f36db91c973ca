// Memory and processor time of the coordinator's process, as the kernel reports them.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace fedge::bench {

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
  std::exit(1);
}

struct Process {
  double resident_kib = 0;
  double peak_kib = 0;
  double cpu_seconds = 0;
};

inline Process look_at(const std::string& pid) {
  Process result;
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:"))
      result.resident_kib = std::strtod(line.c_str() + 6, nullptr);
    else if (line.starts_with("VmHWM:"))
      result.peak_kib = std::strtod(line.c_str() + 6, nullptr);
  }
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string text;
  std::getline(stat, text);
  if (text.empty()) give_up("the coordinator has ended");
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  double user = 0;
  double system = 0;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system;
  result.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return result;
}

}  // namespace fedge::bench
