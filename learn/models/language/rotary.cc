#include "learn/models/language/rotary.h"

#include <cmath>
#include <numbers>

#include "core/check.h"

namespace fedge::learn {
namespace {

// Radians by which one position turns a pair whose unscaled angle is `angle`.
double scaled_angle(const RotarySpec& spec, double angle) {
  if (spec.scaling == RotaryScaling::kNone) return angle;
  if (spec.scaling == RotaryScaling::kLinear) return angle / spec.factor;
  const double turns = spec.original * angle / (2 * std::numbers::pi);
  if (turns >= spec.high) return angle;
  if (turns <= spec.low) return angle / spec.factor;
  const double fast = (turns - spec.low) / (spec.high - spec.low);
  return (1 - fast) * angle / spec.factor + fast * angle;
}

}  // namespace

RotaryTable::RotaryTable(const RotarySpec& spec, std::size_t positions, std::size_t size)
    : half_(size / 2), cosines_(positions * half_), sines_(positions * half_) {
  FEDGE_CHECK(size % 2 == 0, "pairs of coordinates");
  for (std::size_t i = 0; i < half_; ++i) {
    const double share = 2 * static_cast<double>(i) / static_cast<double>(size);
    const double angle = scaled_angle(spec, std::pow(spec.theta, -share));
    for (std::size_t p = 0; p < positions; ++p) {
      cosines_[p * half_ + i] = static_cast<float>(std::cos(static_cast<double>(p) * angle));
      sines_[p * half_ + i] = static_cast<float>(std::sin(static_cast<double>(p) * angle));
    }
  }
}

void RotaryTable::turn(const Heads& heads) const {
  for (std::size_t r = 0; r < heads.rows; ++r) {
    const std::size_t position = heads.first + r % heads.length;
    const float* cosines = cosines_.data() + position * half_;
    const float* sines = sines_.data() + position * half_;
    for (std::size_t h = 0; h < heads.count; ++h) {
      float* __restrict a = heads.data + r * heads.row + h * 2 * half_;
      float* __restrict b = a + half_;
      const float sign = heads.back ? -1.0F : 1.0F;
      for (std::size_t i = 0; i < half_; ++i) {
        const float first = a[i];
        const float second = b[i];
        const float sine = sign * sines[i];
        a[i] = first * cosines[i] - second * sine;
        b[i] = second * cosines[i] + first * sine;
      }
    }
  }
}

}  // namespace fedge::learn
