#include "server/admin/process_figures.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace fedge::server {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Starts at -1 because the listing itself opens a descriptor, which must not be counted.
std::optional<double> count_open_files() {
  std::error_code error;
  double count = -1;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) ++count;
  return error ? std::nullopt : std::optional(count);
}

}  // namespace

ProcessFigures process_figures() {
  ProcessFigures figures;
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident = 0;
  if (statm >> pages >> resident) {
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    figures.virtual_bytes = pages * page;
    figures.resident_bytes = resident * page;
  }
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    figures.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  figures.open_files = count_open_files();
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    figures.max_files = limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                                        : static_cast<double>(limit.rlim_cur);
  return figures;
}

}  // namespace fedge::server
