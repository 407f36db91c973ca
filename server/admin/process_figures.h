// What the operating system says of this process. A shell's tool; where there is no /proc, less is known.
#pragma once

#include <optional>

namespace fedge::server {

struct ProcessFigures {
  std::optional<double> resident_bytes;
  std::optional<double> virtual_bytes;
  double cpu_seconds = 0;  // user and system, of all threads
  std::optional<double> open_files;
  std::optional<double> max_files;  // the soft limit; infinite if there is none
};

ProcessFigures process_figures();

}  // namespace fedge::server
