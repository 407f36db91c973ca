#include "client/trainers/line_log.h"

#include <algorithm>

#include "core/text.h"

namespace fedge::client {

void LineLog::feed(std::string_view bytes, Time now, const std::function<void(const std::string&)>& line) {
  if (now - second_ >= seconds(1)) {
    second_ = now;
    said_ = 0;
    say_dropped(line);
  }
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    begun_ += piece.substr(0, kMaxLine - std::min(kMaxLine, begun_.size()));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    say(line);
  }
}

void LineLog::finish(const std::function<void(const std::string&)>& line) {
  if (!begun_.empty()) say(line);
  say_dropped(line);
}

void LineLog::say(const std::function<void(const std::string&)>& line) {
  if (said_ < kLinesASecond) {
    ++said_;
    line(clean_text(begun_, kMaxLine));
  } else {
    ++dropped_;
  }
  begun_.clear();
}

void LineLog::say_dropped(const std::function<void(const std::string&)>& line) {
  if (dropped_ > 0) line("(" + std::to_string(dropped_) + " more lines in the same second were dropped)");
  dropped_ = 0;
}

}  // namespace fedge::client
