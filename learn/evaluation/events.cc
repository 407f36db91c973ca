#include "learn/evaluation/events.h"

#include <algorithm>

namespace fedge::learn {
namespace {

std::size_t distance(std::size_t a, std::size_t b) { return std::max(a, b) - std::min(a, b); }

bool covers(const StepEvent& a, const StepEvent& b) {
  const std::size_t begin = std::max(a.begin, b.begin);
  const std::size_t end = std::min(a.end, b.end);
  if (a.label != b.label || end <= begin) return false;
  return 2 * (end - begin) >= std::max(a.end, b.end) - std::min(a.begin, b.begin);
}

}  // namespace

std::vector<StepEvent> events_of(std::span<const std::uint32_t> classes) {
  std::vector<StepEvent> events;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] == 0) continue;
    if (!events.empty() && events.back().end == i && events.back().label == classes[i])
      ++events.back().end;
    else
      events.push_back({i, i + 1, classes[i]});
  }
  return events;
}

EventMatch match_events(std::span<const std::uint32_t> truth, std::span<const std::uint32_t> predicted) {
  const auto truths = events_of(truth);
  const auto guesses = events_of(predicted);
  EventMatch match{.truths = truths.size(), .predicted = guesses.size()};
  for (const StepEvent& event : truths) {
    const auto guess =
        std::ranges::find_if(guesses, [&](const StepEvent& other) { return covers(event, other); });
    if (guess == guesses.end()) continue;
    ++match.found;
    match.boundary_steps += distance(event.begin, guess->begin) + distance(event.end, guess->end);
  }
  return match;
}

}  // namespace fedge::learn
