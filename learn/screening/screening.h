// Screening: finds events in a stream of sensor samples, such as shocks in the acceleration of a vehicle, and
// cuts out segments around them. Reconstructed from the abstract of Wu, Chen, Liang (arXiv:2605.10055, 2026):
// an adaptive mixture of Gaussians models the background, and what lies above it is an event.
//
//   signal -> high pass -> x = log(mean square of the last w samples + 1e-6) -> Mixture -> score s
//
// An event opens when s >= open in two of three samples, and closes once s < close for close_seconds. Events
// closer than merge_seconds become one, shorter ones than least_seconds are dropped (both without the
// closing time), and longer ones than most_seconds are divided. A segment is an event with its context on
// both sides; contexts of neighbours do not overlap. While the score is high the background learns slowly. If
// it stays high for longer than relearn_seconds, the background has changed, and learns at its full rate.
//
// Pure state machine: any division of a stream into calls gives the same bits. Cost: under a microsecond a
// sample. Memory: the samples of most_seconds + merge_seconds + 2 context_seconds, and a few hundred bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"
#include "learn/screening/mixture.h"

namespace fedge::learn {

struct ScreeningSpec {
  double rate_hz = 100;                   // samples a second
  std::size_t channels = 1;               // numbers of a sample
  std::vector<std::size_t> signal = {0};  // the channels whose Euclidean norm is screened
  // The channel by which the norm is multiplied, for example to remove the influence of a vehicle's speed.
  std::optional<std::size_t> gain = {};
  double high_pass_hz = 0.5;  // first order; 0: none
  std::size_t window = 10;    // w, in samples
  MixtureSpec mixture;
  // Not 0: no mixture. The score is `open` where the signal after the high pass has this magnitude, and
  // proportional to it; for comparisons.
  double threshold = 0;
  double open = 3.0;
  double close = 1.5;
  double warmup_seconds = 10;  // no events before
  double close_seconds = 0.3;
  double least_seconds = 0.03;
  double merge_seconds = 0.5;
  double most_seconds = 4;
  double context_seconds = 0.64;
  double relearn_seconds = 5;

  // Rounded to samples.
  std::size_t samples(double seconds) const;
};

inline constexpr std::size_t kMaxScreeningWindow = 256;
inline constexpr std::size_t kMaxScreeningChannels = 32;
inline constexpr std::size_t kMaxScreeningMemory = std::size_t{1} << 20;  // floats that a screening may hold

// kInvalid names the value that is impossible.
Result<void> check_screening(const ScreeningSpec& spec);

// An event in a stream, with its context.
struct Segment {
  std::uint64_t begin = 0;        // number of its first sample in the stream, with context
  std::uint64_t event_begin = 0;  // without context
  std::uint64_t event_end = 0;    // one past the last
  bool continued = false;         // the same event as that of the segment before: it was divided
  std::vector<float> values;      // samples x channels
  bool operator==(const Segment&) const = default;
};

class Screening {
 public:
  using OnSegment = std::function<void(Segment)>;

  // `spec` must have passed check_screening().
  explicit Screening(const ScreeningSpec& spec);

  // Takes whole samples, all channels of one after the other; finite values. Calls `on_segment` for each
  // segment that is complete.
  void push(std::span<const float> samples, const OnSegment& on_segment);
  // The stream has ended, or a part of it is missing: the open event is complete, and no context reaches over
  // this place. What was learnt of the background stays.
  void interrupt(const OnSegment& on_segment);

  std::uint64_t seen() const { return position_; }    // samples
  std::uint64_t flagged() const { return flagged_; }  // of them in events of complete segments
  std::uint64_t kept() const { return kept_; }        // of them in complete segments
  double score() const { return score_; }             // of the last sample
  bool open() const { return state_ != State::kQuiet; }
  const Mixture& mixture() const { return mixture_; }
  // The background learns nothing from now on.
  void freeze() { mixture_.freeze(); }
  // Counts this object and its buffers.
  std::size_t memory_bytes() const;

 private:
  enum class State { kQuiet, kOpen, kClosed };

  void take(std::span<const float> sample, const OnSegment& on_segment);
  double pass(double signal);
  double log_energy() const;
  void learn(double x);
  void follow(const OnSegment& on_segment);
  void begin_event();
  void end_event();
  void emit(std::uint64_t end, const OnSegment& on_segment);
  float* place(std::uint64_t sample) { return ring_.data() + sample % capacity_ * spec_.channels; }

  ScreeningSpec spec_;
  std::size_t close_;  // the times of the specification, in samples
  std::size_t least_;
  std::size_t merge_;
  std::size_t most_;
  std::size_t context_;
  std::size_t capacity_;
  std::vector<float> ring_;  // the last samples

  std::uint64_t position_ = 0;  // samples so far
  std::uint64_t start_ = 0;     // the first one after the last interruption
  double smoothing_ = 1;        // of the high pass
  double before_ = 0;
  double passed_ = 0;
  std::array<double, kMaxScreeningWindow> squares_{};

  Mixture mixture_;
  double score_ = 0;
  std::uint32_t high_ = 0;      // bit k: the score k samples ago was at least `open`
  std::uint64_t high_for_ = 0;  // samples since the score was last below `close`

  State state_ = State::kQuiet;
  bool continued_ = false;
  std::uint64_t event_begin_ = 0;
  std::uint64_t last_high_ = 0;    // last sample of the event with a score of at least `close`
  std::uint64_t event_end_ = 0;    // of a closed event
  std::uint64_t segment_end_ = 0;  // of the last segment
  std::uint64_t flagged_ = 0;
  std::uint64_t kept_ = 0;
};

}  // namespace fedge::learn
