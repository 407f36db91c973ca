// ReadLimit: how long the reader of a stream waits, so that it takes at most a number of lines in each second
// of its clock. Text without line ends counts by its length: a line for each kBytesOfLine. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace fedge::client {

class ReadLimit {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kBytesOfLine = 256;

  ReadLimit(double most_per_second, Clock::time_point now) : most_(most_per_second), second_(now) {}

  // `text` has been read at this time. Returns for how long nothing may be read.
  std::chrono::milliseconds wait(Clock::time_point now, std::string_view text) {
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      lines_ = 0;
    }
    const auto ends = static_cast<std::size_t>(std::ranges::count(text, '\n'));
    lines_ += std::max(ends, text.size() / kBytesOfLine);
    if (static_cast<double>(lines_) < most_) return std::chrono::milliseconds(0);
    return std::chrono::ceil<std::chrono::milliseconds>(second_ + std::chrono::seconds(1) - now);
  }

 private:
  double most_;
  Clock::time_point second_;  // when the current second began
  std::uint64_t lines_ = 0;   // in it
};

}  // namespace fedge::client
