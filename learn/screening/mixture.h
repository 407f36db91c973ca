// Mixture: a mixture of Gaussians of one number that follows a stream and says which of its values belong to
// the background (Stauffer and Grimson, "Adaptive background mixture models for real-time tracking", CVPR
// 1999; in one dimension, with the simple learning rate). Pure state machine: the same values give the same
// bits, however they are grouped. Cost: a few dozen operations a value; memory: 3 numbers a component.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fedge::learn {

struct MixtureSpec {
  std::size_t components = 3;     // J, at most kMost
  double rate = 0.001;            // rho: the memory is 1 / rho values
  double match = 2.5;             // lambda: a value matches a component within this many deviations
  double first_deviation = 1.0;   // sigma_0, of a new component
  double least_deviation = 0.05;  // sigma_min
  double background = 0.7;        // T_B: the background has at least this weight
  double foreground_rate = 0.1;   // factor of the rate while an event lasts

  static constexpr std::size_t kMost = 8;
};

class Mixture {
 public:
  explicit Mixture(const MixtureSpec& spec) : spec_(spec) {}

  struct Component {
    double weight = 0;
    double mean = 0;
    double variance = 0;
    bool operator==(const Component&) const = default;
  };

  // How far the value lies above the background: the least (x - mean) / deviation over the components of the
  // background, and 0 below their means. 0 before the first value.
  double score(double x) const;
  // Learns from the value. `foreground`: it belongs to an event, so it changes little. While fewer than 1 /
  // rho values have come, the rate is 1 / their number.
  void learn(double x, bool foreground);
  // Learns nothing from now on.
  void freeze() { frozen_ = true; }
  // Whether the mixture has seen 1 / rho values.
  bool settled() const { return static_cast<double>(values_) * spec_.rate >= 1; }

  // The components, of which the first count() are in use, by falling weight / deviation.
  std::size_t count() const { return count_; }
  const Component& component(std::size_t i) const { return components_[i]; }

 private:
  std::size_t background_count() const;
  void replace_last(double x);
  void sort();

  MixtureSpec spec_;
  std::array<Component, MixtureSpec::kMost> components_{};
  std::size_t count_ = 0;
  std::uint64_t values_ = 0;
  bool frozen_ = false;
};

}  // namespace fedge::learn
