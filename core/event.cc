#include "core/event.h"

#include <cstdio>

namespace fedge {
namespace {

struct Printer {
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }
  // Quotes the value and escapes control characters and quotes: a peer's string must not forge a log line.
  std::string operator()(const std::string& value) const {
    std::string text = "\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') {
        text += '\\';
        text += c;
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(c));
        text += escape;
      } else {
        text += c;
      }
    }
    return text + '"';
  }
};

}  // namespace

std::string to_string(const Event& event) {
  std::string line = event.name;
  for (const auto& [key, value] : event.fields) line += ' ' + key + '=' + std::visit(Printer{}, value);
  return line;
}

}  // namespace fedge
