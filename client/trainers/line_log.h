// LineLog: splits a program's standard error into lines for the log: cleaned, shortened, and limited per
// second. Takes bytes and time, returns lines. Memory: a few KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace fedge::client {

class LineLog {
 public:
  static constexpr std::size_t kMaxLine = 500;         // bytes; the rest of a longer line is dropped
  static constexpr std::uint32_t kLinesASecond = 100;  // further lines are counted and dropped

  // Calls `line` for each completed line, and once with the count of lines dropped in an earlier second.
  void feed(std::string_view bytes, Time now, const std::function<void(const std::string&)>& line);
  // Reports the last line if it has no line feed.
  void finish(const std::function<void(const std::string&)>& line);

 private:
  void say(const std::function<void(const std::string&)>& line);
  void say_dropped(const std::function<void(const std::string&)>& line);

  std::string begun_;
  Time second_{};  // start of the second for which lines are counted
  std::uint32_t said_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace fedge::client
