// Confirmation: events that several vehicles have detected at the same place of a road. A reconstruction: the
// paper of learn/screening/screening.h only says that vehicles are combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedge::learn {

struct Detection {
  std::size_t vehicle = 0;
  double metres = 0;
  std::uint32_t label = 0;
};

struct ConfirmedEvent {
  double metres = 0;  // mean of its detections
  std::uint32_t label = 0;
  std::size_t vehicles = 0;  // that have detected it
};

// The places at which at least `vehicles` vehicles have detected an event of one class, ascending. Detections
// of a class belong to one place if they lie within this many metres of the first of them. Their order does
// not matter.
std::vector<ConfirmedEvent> confirm(std::vector<Detection> detections, double within, std::size_t vehicles);

}  // namespace fedge::learn
