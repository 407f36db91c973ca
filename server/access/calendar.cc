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

std::optional<UnixSeconds> parse_calendar_text(const std::string& text) {
  std::tm calendar{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &calendar);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return ::timegm(&calendar);
}

}  // namespace fedge::server
