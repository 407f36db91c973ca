#include "learn/screening/screening.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/text.h"

namespace fedge::learn {
namespace {

constexpr double kLeastEnergy = 1e-6;

Result<void> check_within(const char* name, double value, double least, double most) {
  if (std::isfinite(value) && value >= least && value <= most) return {};
  return invalid(std::string(name) + " is " + number_text(value) + ", expected " + number_text(least) +
                 " to " + number_text(most));
}

std::size_t floats_of(const ScreeningSpec& spec) {
  const std::size_t samples = spec.samples(spec.most_seconds) + spec.samples(spec.merge_seconds) +
                              spec.samples(spec.close_seconds) + 2 * spec.samples(spec.context_seconds) + 4;
  return samples * spec.channels;
}

}  // namespace

std::size_t ScreeningSpec::samples(double seconds) const {
  return static_cast<std::size_t>(std::llround(seconds * rate_hz));
}

Result<void> check_screening(const ScreeningSpec& spec) {
  FEDGE_TRY_VOID(check_within("the sampling rate", spec.rate_hz, 1, 1e5));
  if (spec.channels == 0 || spec.channels > kMaxScreeningChannels)
    return invalid("there are " + std::to_string(spec.channels) + " channels, expected 1 to " +
                   std::to_string(kMaxScreeningChannels));
  if (spec.signal.empty()) return invalid("no channel is screened");
  for (const std::size_t channel : spec.signal)
    if (channel >= spec.channels)
      return invalid("channel " + std::to_string(channel) + " is screened, but there are only " +
                     std::to_string(spec.channels));
  if (spec.gain && *spec.gain >= spec.channels)
    return invalid("channel " + std::to_string(*spec.gain) + " is the gain, but there are only " +
                   std::to_string(spec.channels));
  FEDGE_TRY_VOID(check_within("the high pass", spec.high_pass_hz, 0, spec.rate_hz / 2));
  if (spec.window == 0 || spec.window > kMaxScreeningWindow)
    return invalid("the window has " + std::to_string(spec.window) + " samples, expected 1 to " +
                   std::to_string(kMaxScreeningWindow));
  const MixtureSpec& mixture = spec.mixture;
  if (mixture.components == 0 || mixture.components > MixtureSpec::kMost)
    return invalid("the mixture has " + std::to_string(mixture.components) + " components, expected 1 to " +
                   std::to_string(MixtureSpec::kMost));
  FEDGE_TRY_VOID(check_within("the rate of learning", mixture.rate, 0, 1));
  FEDGE_TRY_VOID(check_within("the distance of a match", mixture.match, 0.1, 100));
  FEDGE_TRY_VOID(check_within("the first deviation", mixture.first_deviation, 1e-6, 1e6));
  FEDGE_TRY_VOID(check_within("the least deviation", mixture.least_deviation, 1e-6, 1e6));
  FEDGE_TRY_VOID(check_within("the weight of the background", mixture.background, 0, 1));
  FEDGE_TRY_VOID(check_within("the factor of the foreground", mixture.foreground_rate, 0, 1));
  FEDGE_TRY_VOID(check_within("the threshold", spec.threshold, 0, 1e9));
  FEDGE_TRY_VOID(check_within("the score at which an event opens", spec.open, 0, 1e6));
  FEDGE_TRY_VOID(check_within("the score at which an event closes", spec.close, 0, spec.open));
  FEDGE_TRY_VOID(check_within("warmup_seconds", spec.warmup_seconds, 0, 3600));
  FEDGE_TRY_VOID(check_within("close_seconds", spec.close_seconds, 0, 60));
  FEDGE_TRY_VOID(check_within("least_seconds", spec.least_seconds, 0, 60));
  FEDGE_TRY_VOID(check_within("merge_seconds", spec.merge_seconds, 0, 60));
  FEDGE_TRY_VOID(check_within("most_seconds", spec.most_seconds, 1 / spec.rate_hz, 60));
  FEDGE_TRY_VOID(check_within("context_seconds", spec.context_seconds, 0, 60));
  FEDGE_TRY_VOID(check_within("relearn_seconds", spec.relearn_seconds, 0, 3600));
  if (floats_of(spec) > kMaxScreeningMemory)
    return invalid("the screening would hold " + std::to_string(floats_of(spec)) + " numbers, at most " +
                   std::to_string(kMaxScreeningMemory) + " are allowed");
  return {};
}

Screening::Screening(const ScreeningSpec& spec)
    : spec_(spec),
      close_(spec.samples(spec.close_seconds)),
      least_(spec.samples(spec.least_seconds)),
      merge_(spec.samples(spec.merge_seconds)),
      most_(spec.samples(spec.most_seconds)),
      context_(spec.samples(spec.context_seconds)),
      capacity_(floats_of(spec) / std::max<std::size_t>(spec.channels, 1)),
      ring_(floats_of(spec)),
      mixture_(spec.mixture) {
  FEDGE_CHECK(check_screening(spec).has_value(), "a possible screening");
  if (spec.high_pass_hz > 0) {
    const double constant = 1 / (2 * std::numbers::pi * spec.high_pass_hz);  // RC, in seconds
    smoothing_ = constant / (constant + 1 / spec.rate_hz);
  }
}

void Screening::push(std::span<const float> samples, const OnSegment& on_segment) {
  FEDGE_CHECK(samples.size() % spec_.channels == 0, "whole samples");
  for (std::size_t i = 0; i < samples.size(); i += spec_.channels)
    take(samples.subspan(i, spec_.channels), on_segment);
}

double Screening::pass(double signal) {
  if (spec_.high_pass_hz == 0) return signal;
  passed_ = position_ == start_ ? 0 : smoothing_ * (passed_ + signal - before_);
  before_ = signal;
  return passed_;
}

// In a fixed order of addition, without a running sum, which would drift.
double Screening::log_energy() const {
  double sum = 0;
  for (std::size_t i = 0; i < spec_.window; ++i) sum += squares_[i];
  return std::log(sum / static_cast<double>(spec_.window) + kLeastEnergy);
}

void Screening::take(std::span<const float> sample, const OnSegment& on_segment) {
  std::copy(sample.begin(), sample.end(), place(position_));
  double square = 0;
  for (const std::size_t channel : spec_.signal)
    square += static_cast<double>(sample[channel]) * static_cast<double>(sample[channel]);
  const double norm =
      spec_.signal.size() == 1 ? static_cast<double>(sample[spec_.signal.front()]) : std::sqrt(square);
  const double passed = pass(spec_.gain ? norm * static_cast<double>(sample[*spec_.gain]) : norm);
  squares_[position_ % spec_.window] = passed * passed;
  ++position_;
  score_ = 0;
  // The window must be full.
  if (position_ - start_ >= spec_.window) {
    if (spec_.threshold > 0) {
      score_ = spec_.open * std::abs(passed) / spec_.threshold;
    } else {
      const double x = log_energy();
      score_ = mixture_.score(x);
      learn(x);
    }
  }
  if (position_ <= spec_.samples(spec_.warmup_seconds)) score_ = 0;
  high_ = (high_ << 1 | (score_ >= spec_.open && score_ > 0 ? 1U : 0U)) & 7U;
  follow(on_segment);
}

void Screening::learn(double x) {
  high_for_ = score_ >= spec_.close && score_ > 0 ? high_for_ + 1 : 0;
  const bool changed = high_for_ > spec_.samples(spec_.relearn_seconds);
  mixture_.learn(x, (score_ >= spec_.open || open()) && !changed);
}

// Decides about the sample before position_.
void Screening::follow(const OnSegment& on_segment) {
  const std::uint64_t now = position_ - 1;
  const bool opens = (high_ & 1U) != 0 && (high_ & 6U) != 0;
  const bool merges = now - event_end_ < merge_ && now + 1 - event_begin_ < most_;
  if (state_ == State::kClosed && opens && merges) {
    state_ = State::kOpen;
    last_high_ = now;
  } else if (state_ == State::kClosed && (opens || now + 1 >= event_end_ + std::max(merge_, context_))) {
    // A neighbour's context begins where this one ends.
    const std::uint64_t last = opens ? now - ((high_ & 2U) != 0 ? 1 : 2) : now + 1;
    emit(std::min<std::uint64_t>(event_end_ + context_, last), on_segment);
  }
  if (state_ == State::kQuiet && opens) begin_event();
  if (state_ != State::kOpen) return;
  if (score_ >= spec_.close && score_ > 0) last_high_ = now;
  if (now + 1 - event_begin_ >= most_) {
    // The rest of the event is a segment of its own.
    event_end_ = now + 1;
    emit(event_end_, on_segment);
    state_ = State::kOpen;
    continued_ = true;
    event_begin_ = last_high_ = now + 1;
    return;
  }
  if (now >= last_high_ + close_) end_event();
}

void Screening::begin_event() {
  // The first of the two samples that have opened it.
  const std::uint64_t now = position_ - 1;
  event_begin_ = std::max(now - ((high_ & 2U) != 0 ? 1 : 2), segment_end_);
  last_high_ = now;
  continued_ = false;
  state_ = State::kOpen;
}

void Screening::end_event() {
  state_ = State::kClosed;
  event_end_ = position_;
  const std::uint64_t active = last_high_ + 1 - std::min(last_high_ + 1, event_begin_);
  if (active < least_ && !continued_) state_ = State::kQuiet;
}

// Cuts out the segment of the event that has ended, up to this sample.
void Screening::emit(std::uint64_t end, const OnSegment& on_segment) {
  const std::uint64_t lead = continued_ ? event_begin_ : std::max(start_, segment_end_);
  const std::uint64_t begin =
      event_begin_ - std::min<std::uint64_t>(event_begin_ - std::min(event_begin_, lead), context_);
  Segment segment{.begin = begin,
                  .event_begin = event_begin_,
                  .event_end = std::min(event_end_, end),
                  .continued = continued_,
                  .values = {}};
  for (std::uint64_t sample = begin; sample < end; ++sample)
    segment.values.insert(segment.values.end(), place(sample), place(sample) + spec_.channels);
  flagged_ += segment.event_end - segment.event_begin;
  kept_ += end - begin;
  segment_end_ = end;
  state_ = State::kQuiet;
  continued_ = false;
  if (end > begin) on_segment(std::move(segment));
}

void Screening::interrupt(const OnSegment& on_segment) {
  if (state_ == State::kOpen && position_ > event_begin_) end_event();
  if (state_ == State::kClosed) emit(std::min<std::uint64_t>(event_end_ + context_, position_), on_segment);
  state_ = State::kQuiet;
  continued_ = false;
  start_ = segment_end_ = position_;
  high_ = 0;
  high_for_ = 0;
}

std::size_t Screening::memory_bytes() const {
  return sizeof *this + ring_.capacity() * sizeof(float) + spec_.signal.capacity() * sizeof(std::size_t);
}

}  // namespace fedge::learn
