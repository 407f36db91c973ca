#include "core/platform/log_format.h"

#include <cmath>
#include <cstdio>
#include <ctime>

#include "core/text.h"

namespace fedge {
namespace {

const char* level_name(Severity severity) {
  return severity == Severity::kDebug     ? "debug"
         : severity == Severity::kInfo    ? "info"
         : severity == Severity::kWarning ? "warning"
                                          : "error";
}

struct JsonPrinter {
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return std::isfinite(value) ? number_text(value) : "null"; }
  std::string operator()(const std::string& value) const { return json_text(value); }
};

}  // namespace

std::string utc_text(std::chrono::system_clock::time_point time) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto since = duration_cast<milliseconds>(time.time_since_epoch()).count();
  const auto whole = static_cast<std::time_t>(since / 1000);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char text[48];
  std::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(since % 1000));
  return text;
}

std::string json_line(const Event& event, std::chrono::system_clock::time_point time) {
  std::string line = "{\"time\":\"" + utc_text(time) + "\",\"level\":\"" + level_name(event.severity) +
                     "\",\"event\":" + json_text(event.name);
  for (const auto& [key, value] : event.fields) {
    const bool taken = key == "time" || key == "level" || key == "event";
    line += "," + json_text(key + (taken ? "_" : "")) + ":" + std::visit(JsonPrinter{}, value);
  }
  return line + "}";
}

}  // namespace fedge
