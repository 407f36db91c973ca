// LineLog: what a program prints to its standard error, as lines for the log: cleaned, cut, and at most so
// many a second, whatever it prints. Bytes and time in, lines out; a few KiB.
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
  static constexpr std::uint32_t kLinesASecond = 100;  // the others are counted and dropped

  // Calls `line` for each line that is complete now, and with a count of those dropped in an earlier second.
  void feed(std::string_view bytes, Time now, const std::function<void(const std::string&)>& line);
  // What is left at the end, without a line feed.
  void finish(const std::function<void(const std::string&)>& line);

 private:
  void say(const std::function<void(const std::string&)>& line);
  void say_dropped(const std::function<void(const std::string&)>& line);

  std::string begun_;
  Time second_{};  // when the one began that is counted
  std::uint32_t said_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace fedge::client
