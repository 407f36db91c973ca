#include "core/platform/repeated_events.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace fedge {
namespace {

// Fields that identify the client, the occasion or the time.
constexpr std::array<std::string_view, 8> kOccasions = {"client", "round", "run",     "task",
                                                        "track",  "peer",  "address", "seconds"};

// Replaces each number, with sign, fraction and exponent, by '#'.
std::string without_numbers(const std::string& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) {
      out += text[i];
      continue;
    }
    if (out.ends_with('-')) out.pop_back();
    out += '#';
    constexpr std::string_view kInNumber = "0123456789.+-e";
    while (i + 1 < text.size() && kInNumber.find(text[i + 1]) != std::string_view::npos) ++i;
  }
  return out;
}

Event without_occasion(const Event& event) {
  Event cause{event.severity, event.name, {}};
  for (const auto& [key, value] : event.fields)
    if (std::ranges::find(kOccasions, key) == kOccasions.end()) cause.fields.emplace_back(key, value);
  return cause;
}

std::string key_of(Event cause) {
  for (auto& [key, value] : cause.fields)
    if (auto* text = std::get_if<std::string>(&value);
        text != nullptr && key == "reason" && cause.severity == Severity::kWarning)
      *text = without_numbers(*text);
  return std::to_string(static_cast<int>(cause.severity)) + to_string(cause);
}

}  // namespace

void RepeatedEvents::add(const Event& event, Time now) {
  end_windows(now);
  if (event.severity < Severity::kWarning) return write_(event, to_string(event));
  const Event cause = without_occasion(event);
  const std::string key = key_of(cause);
  auto found = causes_.find(key);
  if (found == causes_.end()) {
    if (causes_.size() == kMaxCauses) {
      const auto oldest = std::ranges::min_element(
          causes_, {}, [](const Causes::value_type& known) { return known.second.first; });
      say(oldest->second);
      causes_.erase(oldest);
    }
    found = causes_.emplace(key, Cause{event.severity, to_string(cause), now}).first;
  }
  if (found->second.shown < kShown) {
    ++found->second.shown;
    return write_(event, to_string(event));
  }
  ++found->second.held_back;
}

void RepeatedEvents::flush() {
  for (const auto& [key, cause] : std::exchange(causes_, {})) say(cause);
}

void RepeatedEvents::say(const Cause& cause) const {
  if (cause.held_back == 0) return;
  const Event count = Event{cause.severity, "log.repeated", {}}
                          .with("count", static_cast<std::int64_t>(cause.held_back))
                          .with("like", cause.text);
  write_(count, "... " + std::to_string(cause.held_back) + " more like this: " + cause.text);
}

void RepeatedEvents::end_windows(Time now) {
  std::erase_if(causes_, [&](const Causes::value_type& known) {
    const bool over = now - known.second.first >= kWindow;
    if (over) say(known.second);
    return over;
  });
}

}  // namespace fedge
