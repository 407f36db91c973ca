// Label: the class of a sample, an integer below the number of classes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fedge::learn {

using Label = std::uint16_t;
// A label has this many values.
inline constexpr std::size_t kMaxClasses = std::size_t{1} << 16;
// Largest number of points of a sample that have a class each.
inline constexpr std::size_t kMaxPoints = std::size_t{1} << 16;

}  // namespace fedge::learn
