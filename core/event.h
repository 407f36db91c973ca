// Structured events: decision code reports events instead of writing log lines. I/O adapters print, store and
// count them; tests assert on them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fedge {

enum class Severity { kDebug, kInfo, kWarning, kError };

struct Event {
  using Value = std::variant<std::int64_t, double, std::string>;

  Severity severity = Severity::kInfo;
  std::string name;  // stable, dotted: "round.closed"
  std::vector<std::pair<std::string, Value>> fields;

  Event& with(std::string key, Value value) {
    fields.emplace_back(std::move(key), std::move(value));
    return *this;
  }
};

// Formats one line: round.closed round=3 completed=9 reason="deadline".
std::string to_string(const Event& event);

}  // namespace fedge
