// ProgressLine: a line at the bottom of the terminal that says how many runs are done. Without a terminal it
// writes nothing. Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace fedge::apps {

class ProgressLine {
 public:
  ProgressLine();
  // `what` is counted: "runs".
  void begin(std::string what, std::size_t all);
  // One more is done. `executed`: it took time; its results were not there before.
  void done(bool executed, std::size_t running);
  void draw(std::size_t running);
  // Erases the line, so that something else can be written.
  void clear();

 private:
  std::string remaining() const;

  bool terminal_;
  bool shown_ = false;
  std::string what_;
  std::size_t all_ = 0;
  std::size_t done_ = 0;
  std::size_t executed_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace fedge::apps
