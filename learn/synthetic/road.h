// Synthetic streams of vertical acceleration from vehicles on a road with potholes, manhole covers, speed
// bumps and joints. A reconstruction after the abstract of Wu, Chen, Liang (arXiv:2605.10055, 2026), whose
// data is not public: every number below is an assumption.
//
// The road's height is a random walk with the spectrum of ISO 8608, classes A to C, which change along the
// road, and the shapes of the events. A vehicle is two oscillators x'' + 2 zeta omega x' + omega^2 x =
// omega^2 u that the height u drives: its body and, with a small weight, its wheel. Its sensor measures the
// acceleration of both, in g, with noise, 100 times a second. Body, wheel, sensor, speed and mix of events
// differ between vehicles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/rng.h"

namespace fedge::learn {

// The classes, in the order of their labels.
inline constexpr std::array<const char*, 5> kRoadClasses = {"background", "pothole", "manhole", "bump",
                                                            "other"};

struct RoadSpec {
  double seconds = 1800;  // of each vehicle
  // Events a second, and concentration of the Dirichlet distribution of their classes in each vehicle.
  double events_per_second = 0.05;
  double mix = 0.5;
  // All vehicles drive on the same road, so that they meet the same events.
  bool same_road = false;
  std::uint64_t seed = 0;
};

inline constexpr double kRoadRate = 100;  // samples a second

struct RoadSample {
  double seconds = 0;
  double z = 0;       // acceleration in g, without gravity
  double speed = 0;   // metres per second
  double metres = 0;  // position
  std::uint8_t label = 0;
};

// The stream of one vehicle, a function of the spec and its number.
std::vector<RoadSample> road_stream(const RoadSpec& spec, std::size_t vehicle);
// The samples as the text of a stream: seconds,z,speed,metres,label.
std::string road_text(const std::vector<RoadSample>& samples);

}  // namespace fedge::learn
