#include "learn/synthetic/road.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "learn/data/replicated_samples.h"

namespace fedge::learn {
namespace {

using std::numbers::pi;

constexpr int kSubsteps = 10;  // of a sample
constexpr double kStep = 1 / (kRoadRate * kSubsteps);
constexpr double kGravity = 9.81;
constexpr double kWheelWeight = 0.05;
constexpr double kRingDown = 0.15;                     // seconds of an event's label after it
constexpr double kMeanSpeed = 11;                      // metres per second
constexpr double kLongestRing = kRingDown * 60 / 3.6;  // metres
constexpr double kReference = 0.1;                     // cycles per metre, of the roughness of ISO 8608
constexpr double kLeak = 0.01;                         // cycles per metre: longer waves are left out
constexpr double kLongest = 3.0;                       // metres of an event
constexpr std::array<double, 3> kRoughness = {16e-6, 64e-6, 256e-6};  // m^3, classes A, B, C

double between(Rng& rng, double low, double high) { return low + (high - low) * rng.uniform(); }

// An event of the road; lengths and heights in metres.
struct RoadEvent {
  std::uint8_t label = 0;
  double at = 0;
  double length = 0;
  double height = 0;
  double impact = 0;  // length of the impact at a pothole's end
};

RoadEvent event_of(std::uint8_t label, double at, Rng& rng) {
  switch (label) {
    case 1: {
      const double length = between(rng, 0.3, 0.8);
      return {label, at, length, between(rng, 0.03, 0.08), between(rng, 0.01, 0.03) * kMeanSpeed};
    }
    case 2:
      return {label, at, 0.6, between(rng, 0.005, 0.015), 0};
    case 3:
      return {label, at, between(rng, 0.5, kLongest), between(rng, 0.05, 0.08), 0};
    default:
      return {label, at, 1.0, between(rng, 0.008, 0.015), 0};
  }
}

// sin^2 over [0, length].
double hollow(double place, double length) {
  if (place < 0 || place > length) return 0;
  const double sine = std::sin(pi * place / length);
  return sine * sine;
}

double half_sine(double place, double length) {
  return place < 0 || place > length ? 0 : std::sin(pi * place / length);
}

// The height that the event adds, `place` metres after its beginning.
double shape(const RoadEvent& event, double place) {
  constexpr double kEdge = 0.1;
  switch (event.label) {
    case 1:
      return -event.height * hollow(place, event.length) +
             0.3 * event.height * half_sine(place - event.length, event.impact);
    case 3:
      return event.height * half_sine(place, event.length);
    default:  // two edges
      return -event.height * (hollow(place, kEdge) + hollow(place - event.length + kEdge, kEdge));
  }
}

std::uint8_t draw_class(const std::array<double, 4>& mix, Rng& rng) {
  double left = rng.uniform();
  for (std::uint8_t k = 0; k < 3; ++k) {
    if (left < mix[k]) return static_cast<std::uint8_t>(k + 1);
    left -= mix[k];
  }
  return 4;
}

// The road under a vehicle: its events and its roughness, drawn as the vehicle comes to them. Where both are
// depends on no vehicle's speed, so that several may drive on one road.
class Road {
 public:
  Road(const RoadSpec& spec, std::size_t vehicle)
      : events_(Rng(spec.seed).fork("road-events", spec.same_road ? 0 : vehicle)),
        classes_(Rng(spec.seed).fork("road-classes", spec.same_road ? 0 : vehicle)),
        surface_(Rng(spec.seed).fork("surface", vehicle)),
        spacing_(kMeanSpeed / spec.events_per_second) {
    Rng mix = Rng(spec.seed).fork("road-mix", spec.same_road ? 0 : vehicle);
    draw_dirichlet(spec.mix, mix, mix_);
    draw_event();
  }

  // Goes on by this many metres; returns the height.
  double advance(double metres) {
    at_ += metres;
    if (at_ > class_ends_) {
      roughness_ = kRoughness[classes_.below(kRoughness.size())];
      class_ends_ += between(classes_, 500, 1500);
    }
    // Adds the sum over the step of white noise with the one-sided density (2 pi n0)^2 G.
    walk_ *= 1 - 2 * pi * kLeak * metres;
    walk_ += 2 * pi * kReference * std::sqrt(roughness_ * metres / 2) * surface_.normal();
    if (at_ > end_of_event() + kLongestRing) draw_event();
    return walk_ + shape(event_, at_ - event_.at);
  }

  // 0, or the class of the event on which the vehicle is, or was until kRingDown ago at this speed.
  std::uint8_t label(double speed) const {
    return at_ >= event_.at && at_ <= end_of_event() + kRingDown * speed ? event_.label : std::uint8_t{0};
  }
  double metres() const { return at_; }

 private:
  double end_of_event() const { return event_.at + event_.length + event_.impact; }
  void draw_event() {
    const double wait = -std::log(1 - events_.uniform()) * spacing_;
    const double at = end_of_event() + kLongestRing + std::min(wait, 5 * spacing_);
    event_ = event_of(draw_class(mix_, events_), at, events_);
  }

  Rng events_;
  Rng classes_;
  Rng surface_;
  std::array<double, 4> mix_{};
  double spacing_;  // metres between events, on average
  RoadEvent event_;
  double at_ = 0;
  double class_ends_ = 0;
  double roughness_ = kRoughness[0];
  double walk_ = 0;
};

// x'' = omega^2 (u - x) - 2 zeta omega x', by the semi-implicit Euler method.
class Oscillator {
 public:
  Oscillator(double hertz, double damping) : omega_(2 * pi * hertz), damping_(damping) {}
  // The acceleration after this step.
  double step(double height) {
    const double acceleration = omega_ * omega_ * (height - place_) - 2 * damping_ * omega_ * velocity_;
    velocity_ += acceleration * kStep;
    place_ += velocity_ * kStep;
    return acceleration;
  }

 private:
  double omega_;
  double damping_;
  double place_ = 0;
  double velocity_ = 0;
};

}  // namespace

std::vector<RoadSample> road_stream(const RoadSpec& spec, std::size_t vehicle) {
  Rng rng = Rng(spec.seed).fork("vehicle", vehicle);
  Oscillator body(between(rng, 1.2, 2.2), between(rng, 0.2, 0.4));
  Oscillator wheel(between(rng, 10, 14), between(rng, 0.2, 0.4));
  const double gain = between(rng, 0.7, 1.3);
  const double noise = between(rng, 0.02, 0.06);
  const double cruise = between(rng, 20, 60) / 3.6;
  Road road(spec, vehicle);
  const auto count = static_cast<std::size_t>(std::llround(spec.seconds * kRoadRate));
  std::vector<RoadSample> samples(count);
  double drift = 0;
  for (std::size_t i = 0; i < count; ++i) {
    drift += -0.001 * drift + 0.01 * rng.normal();
    const double speed = std::clamp(cruise * (1 + 0.2 * drift), 20 / 3.6, 60 / 3.6);
    double acceleration = 0;
    for (int k = 0; k < kSubsteps; ++k) {
      const double height = road.advance(speed * kStep);
      acceleration += body.step(height) + kWheelWeight * wheel.step(height);
    }
    samples[i] = {.seconds = static_cast<double>(i) / kRoadRate,
                  .z = gain * acceleration / (kSubsteps * kGravity) + noise * rng.normal(),
                  .speed = speed,
                  .metres = road.metres(),
                  .label = road.label(speed)};
  }
  return samples;
}

std::string road_text(const std::vector<RoadSample>& samples) {
  std::string text = "seconds,z,speed,metres,label\n";
  char line[128];
  for (const RoadSample& sample : samples) {
    std::snprintf(line, sizeof line, "%.2f,%.4f,%.2f,%.2f,%d\n", sample.seconds, sample.z, sample.speed,
                  sample.metres, static_cast<int>(sample.label));
    text += line;
  }
  return text;
}

}  // namespace fedge::learn
