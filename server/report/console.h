// RoundTable prints one line per round as the run proceeds. On a terminal, a progress bar follows the
// lines.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "learn/data/targets/target.h"
#include "server/report/metrics.h"

namespace fedge::server {

class RoundTable {
 public:
  // Writes to `out`, which the caller owns and closes.
  RoundTable(std::FILE* out, std::uint32_t rounds);
  ~RoundTable();
  RoundTable(const RoundTable&) = delete;
  RoundTable& operator=(const RoundTable&) = delete;

  // `task`: of the run's data, which decides the figure of the second column.
  void begin(const std::string& name, learn::TargetKind task);
  void add(const RoundMetrics& metrics);
  // Erases the progress bar.
  void finish();

 private:
  void draw_bar();
  void clear_bar();

  std::FILE* out_;
  std::uint32_t rounds_;
  bool terminal_;
  bool bar_shown_ = false;
  std::uint64_t done_ = 0;
  double seconds_ = 0;  // of wall time, at the last round
};

// "812 B", "1.4 MB": decimal units, three significant digits.
std::string format_bytes(std::uint64_t bytes);
// "4.2 s", "3 min 05 s", "2 h 07 min".
std::string format_seconds(double value);

}  // namespace fedge::server
