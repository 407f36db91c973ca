#include "apps/simulation/sweep/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "server/report/console.h"

namespace fedge::apps {

ProgressLine::ProgressLine() : terminal_(::isatty(STDOUT_FILENO) != 0) {}

void ProgressLine::begin(std::string what, std::size_t all) {
  what_ = std::move(what);
  all_ = all;
  done_ = executed_ = 0;
  begin_ = std::chrono::steady_clock::now();
}

// The time that the others take if they take as long as those before.
std::string ProgressLine::remaining() const {
  if (executed_ == 0) return "";
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  return ", about " +
         server::format_seconds(seconds / static_cast<double>(executed_) *
                                static_cast<double>(all_ - done_)) +
         " left";
}

void ProgressLine::draw(std::size_t running) {
  if (!terminal_) return;
  clear();
  std::printf("%zu of %zu %s done, %zu running%s", done_, all_, what_.c_str(), running, remaining().c_str());
  std::fflush(stdout);
  shown_ = true;
}

void ProgressLine::done(bool executed, std::size_t running) {
  ++done_;
  if (executed) ++executed_;
  draw(running);
}

void ProgressLine::clear() {
  if (shown_) std::printf("\r\033[K");
  shown_ = false;
}

}  // namespace fedge::apps
