// Events in a sequence with a class at each step: the longest runs of steps of one class other than class 0,
// the background.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fedge::learn {

struct StepEvent {
  std::size_t begin = 0;
  std::size_t end = 0;  // one past its last step
  std::uint32_t label = 0;
  bool operator==(const StepEvent&) const = default;
};
std::vector<StepEvent> events_of(std::span<const std::uint32_t> classes);

// How the predicted events of a sequence fit the true ones. A true event is found if a predicted one of its
// class covers it: their intersection has at least half of the steps of their union. No predicted event can
// find two, because there is a step between two true events of a class.
struct EventMatch {
  std::uint64_t truths = 0;
  std::uint64_t predicted = 0;
  std::uint64_t found = 0;
  std::uint64_t boundary_steps = 0;  // sum over the found events of both boundaries' distances
};
EventMatch match_events(std::span<const std::uint32_t> truth, std::span<const std::uint32_t> predicted);

}  // namespace fedge::learn
