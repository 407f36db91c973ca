// Resource usage of this process, read from the operating system. Without /proc, some values are unknown.
#pragma once

#include <optional>

namespace fedge::server {

struct ProcessFigures {
  std::optional<double> resident_bytes;
  std::optional<double> virtual_bytes;
  double cpu_seconds = 0;  // user and system time of all threads
  std::optional<double> open_files;
  std::optional<double> max_files;  // the soft limit; infinite if there is none
};

ProcessFigures process_figures();

}  // namespace fedge::server
