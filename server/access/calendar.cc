#include "server/access/calendar.h"

#include <array>
#include <chrono>
#include <ctime>

namespace fedge::server {

UnixSeconds calendar_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string calendar_text(UnixSeconds time) {
  const std::time_t seconds = time;
  std::tm calendar{};
  if (::gmtime_r(&seconds, &calendar) == nullptr) return std::to_string(time);
  std::array<char, 48> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &calendar);
  return text.data();
}

}  // namespace fedge::server
