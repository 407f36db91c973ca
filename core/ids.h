// Strong types for ids and counts: different ids or quantities cannot be mixed, and conversions to and from
// plain integers are explicit.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace fedge {

// An identifier: comparable and hashable, without arithmetic.
template <class Tag, class Rep>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Rep value_{};
};

// An amount: can be added only to amounts of the same kind.
template <class Tag, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity other) const { return Quantity(value_ + other.value_); }
  constexpr Quantity operator-(Quantity other) const { return Quantity(value_ - other.value_); }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }

 private:
  Rep value_{};
};

// A client's number within a coordinator, assigned with its join token, starting at 0.
using ClientId = StrongId<struct ClientIdTag, std::uint32_t>;
// A run's number: the first 8 bytes of the hash of its run file.
using RunId = StrongId<struct RunIdTag, std::uint64_t>;
// A track's number within a run, in the order in which tracks begin; 0 is the track that excludes no client.
using TrackId = StrongId<struct TrackIdTag, std::uint32_t>;
// Rounds count from 1; round 0 is the initial model.
using RoundNumber = StrongId<struct RoundNumberTag, std::uint32_t>;

// Identifies a client's task in a run: training in this round with the model of this track, or the evaluation
// of the model that this training made.
// TaskKind says what a client does in a task.
enum class TaskKind : std::uint8_t {
  kTraining,
  kEvaluation,  // of the model, on the client's own samples
  kStatistics,  // of the client's own training samples; the round is the number of the attempt
};

struct TaskId {
  RoundNumber round;
  TrackId track;
  TaskKind kind = TaskKind::kTraining;
  constexpr auto operator<=>(const TaskId&) const = default;
};

constexpr RoundNumber next(RoundNumber round) { return RoundNumber(round.value() + 1); }

using Bytes = Quantity<struct BytesTag, std::uint64_t>;
// Training samples; also the integer weight of an update in an average.
using SampleCount = Quantity<struct SampleCountTag, std::uint64_t>;

}  // namespace fedge

template <class Tag, class Rep>
struct std::hash<fedge::StrongId<Tag, Rep>> {
  std::size_t operator()(fedge::StrongId<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value()); }
};
