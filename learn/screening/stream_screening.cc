#include "learn/screening/stream_screening.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.h"

namespace fedge::learn {
namespace {

constexpr double kRateSeconds = 2;         // between measurements of the rate
constexpr std::uint64_t kLeastBlock = 32;  // samples
constexpr double kLeastSpeed = 1;          // metres per second; slower vehicles have its gain
constexpr double kLeastGapSamples = 3;     // a gap is at least as long as this many samples
constexpr std::uint64_t kBytesOfNumber = 2;
constexpr std::uint64_t kBytesOfWindow = 32;

StreamWindow window_at(const KeptSegment& segment, std::ptrdiff_t first, std::size_t window, double rate_hz) {
  const std::size_t channels = segment.channels;
  const auto samples = static_cast<std::ptrdiff_t>(segment.samples());
  StreamWindow made{.seconds = segment.seconds + static_cast<double>(first) / rate_hz,
                    .begin = static_cast<std::size_t>(std::max<std::ptrdiff_t>(-first, 0)),
                    .values = std::vector<float>(window * channels),
                    .labels = std::vector<std::uint8_t>(segment.labels.empty() ? 0 : window)};
  const std::ptrdiff_t from = std::max<std::ptrdiff_t>(first, 0);
  const std::ptrdiff_t to = std::min(first + static_cast<std::ptrdiff_t>(window), samples);
  made.end = made.begin + static_cast<std::size_t>(to - from);
  for (std::size_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (std::ptrdiff_t i = from; i < to; ++i)
      sum += static_cast<double>(segment.values[static_cast<std::size_t>(i) * channels + c]);
    const auto mean = static_cast<float>(sum / static_cast<double>(to - from));
    for (std::size_t i = 0; i < window; ++i) made.values[i * channels + c] = mean;
  }
  std::copy(segment.values.begin() + from * static_cast<std::ptrdiff_t>(channels),
            segment.values.begin() + to * static_cast<std::ptrdiff_t>(channels),
            made.values.begin() + static_cast<std::ptrdiff_t>(made.begin * channels));
  if (!made.labels.empty())
    std::copy(segment.labels.begin() + from, segment.labels.begin() + to,
              made.labels.begin() + static_cast<std::ptrdiff_t>(made.begin));
  if (!segment.metres.empty())
    made.metres = {static_cast<double>(segment.metres[static_cast<std::size_t>(from)]),
                   static_cast<double>(segment.metres[static_cast<std::size_t>(to - 1)])};
  return made;
}

}  // namespace

std::vector<StreamWindow> windows_of(const KeptSegment& segment, std::size_t window, double rate_hz) {
  std::vector<StreamWindow> windows;
  const std::size_t samples = segment.samples();
  if (samples == 0) return windows;
  if (samples <= window) {
    const auto before = static_cast<std::ptrdiff_t>((window - samples) / 2);
    windows.push_back(window_at(segment, -before, window, rate_hz));
    return windows;
  }
  for (std::size_t first = 0; first + window < samples; first += window / 2)
    windows.push_back(window_at(segment, static_cast<std::ptrdiff_t>(first), window, rate_hz));
  windows.push_back(window_at(segment, static_cast<std::ptrdiff_t>(samples - window), window, rate_hz));
  return windows;
}

std::size_t window_count(std::size_t samples, std::size_t window) {
  if (samples <= window) return samples == 0 ? 0 : 1;
  return (samples - window - 1) / (window / 2) + 2;
}

void StreamScreening::push(std::string_view text, const Handlers& handlers) {
  lines_.push(
      text, [&](const StreamSample& sample) { take(sample, handlers); },
      [&](const std::string& what) {
        ++figures_.broken;
        interrupt(handlers);
        if (handlers.on_fault) handlers.on_fault("line", what);
      });
}

void StreamScreening::pause(const Handlers& handlers) { interrupt(handlers); }

void StreamScreening::end(const Handlers& handlers) {
  lines_.end([&](const StreamSample& sample) { take(sample, handlers); },
             [&](const std::string& what) {
               ++figures_.broken;
               if (handlers.on_fault) handlers.on_fault("line", what);
             });
  interrupt(handlers);
}

void StreamScreening::take(const StreamSample& sample, const Handlers& handlers) {
  if (skip_until_ && sample.seconds <= *skip_until_) return;
  skip_until_.reset();
  if (!screening_ && !begin_screening(handlers)) return;
  if (labelled_ != sample.labelled || placed_ != sample.placed) interrupt(handlers);
  labelled_ = sample.labelled;
  placed_ = sample.placed;
  const double step = follow_clock(sample, handlers);
  if (!follow_rate(step, handlers)) return;
  std::copy(sample.channels.begin(), sample.channels.end(), row_.begin());
  const std::size_t channels = sample.channels.size();
  row_[channels] = static_cast<float>(sample.label);
  row_[channels + 1] = sample.metres;
  row_[channels + 2] = gain_of(sample);
  if (handlers.on_sample) handlers.on_sample(figures_.samples, sample.label);
  ++figures_.samples;
  screened_at_ = sample.seconds;
  screening_->push(row_, [&](const Segment& segment) { emit(segment, handlers); });
}

// False: the rules do not fit the stream.
bool StreamScreening::begin_screening(const Handlers& handlers) {
  if (broken_) return false;
  const auto rules = spec_.screening_of(lines_.channels());
  if (!rules) {
    broken_ = true;
    if (handlers.on_fault) handlers.on_fault("line", rules.error().message);
    return false;
  }
  screening_.emplace(*rules);
  row_.resize(lines_.channels().size() + 3);
  return true;
}

// Returns the step from the sample before, in the same piece of the stream; below 0: there is none.
double StreamScreening::follow_clock(const StreamSample& sample, const Handlers& handlers) {
  const double longest = std::max(spec_.gap_seconds, kLeastGapSamples / spec_.screening.rate_hz);
  const double step = begun_ ? sample.seconds - last_seconds_ : 0;
  const bool follows = begun_ && step >= 0 && step <= longest;
  if (step > longest) {
    ++figures_.gaps;
    interrupt(handlers);
    if (handlers.on_fault)
      handlers.on_fault("gap", "no samples for " + number_text(std::round(step * 1000) / 1000) + " s");
  } else if (step < 0) {
    ++figures_.clock_steps;
    interrupt(handlers);
    if (handlers.on_fault)
      handlers.on_fault("clock",
                        "the clock went back by " + number_text(std::round(-step * 1000) / 1000) + " s");
  }
  begun_ = true;
  last_seconds_ = sample.seconds;
  return follows ? step : -1;
}

// The rate is that of the last whole block of steps, whatever interrupts the stream between them. False: it
// is wrong.
bool StreamScreening::follow_rate(double step, const Handlers& handlers) {
  const double declared = spec_.screening.rate_hz;
  if (step >= 0) {
    ++block_;
    block_seconds_ += step;
  }
  const auto whole = std::max(kLeastBlock, static_cast<std::uint64_t>(kRateSeconds * declared));
  if (block_ >= whole) {
    const double measured = block_seconds_ > 0 ? static_cast<double>(block_) / block_seconds_ : HUGE_VAL;
    const bool was_wrong = wrong_rate_;
    wrong_rate_ = !(std::abs(measured / declared - 1) <= spec_.rate_tolerance);
    if (wrong_rate_ && !was_wrong) {
      if (screening_) screening_->interrupt([&](const Segment& segment) { emit(segment, handlers); });
      if (handlers.on_fault)
        handlers.on_fault("rate", "the stream has " +
                                      (std::isfinite(measured) ? number_text(std::round(measured * 10) / 10)
                                                               : std::string("far more")) +
                                      " samples a second, expected " + number_text(declared) +
                                      " (rate_hz); nothing is kept until the rate is right");
    }
    block_ = 0;
    block_seconds_ = 0;
  }
  if (wrong_rate_) ++figures_.wrong_rate;
  return !wrong_rate_;
}

void StreamScreening::interrupt(const Handlers& handlers) {
  begun_ = false;
  if (screening_) screening_->interrupt([&](const Segment& segment) { emit(segment, handlers); });
}

void StreamScreening::emit(const Segment& segment, const Handlers& handlers) {
  const std::size_t channels = lines_.channels().size();
  const std::size_t row = channels + 3;
  const std::size_t samples = segment.values.size() / row;
  const auto back = static_cast<double>(figures_.samples - 1 - segment.begin);
  KeptSegment kept{.seconds = screened_at_ - back / spec_.screening.rate_hz,
                   .begin = segment.begin,
                   .event_begin = segment.event_begin,
                   .event_end = segment.event_end,
                   .continued = segment.continued,
                   .channels = channels,
                   .values = std::vector<float>(samples * channels),
                   .labels = std::vector<std::uint8_t>(labelled_ ? samples : 0)};
  for (std::size_t i = 0; i < samples; ++i) {
    const float* from = segment.values.data() + i * row;
    std::copy_n(from, channels, kept.values.begin() + static_cast<std::ptrdiff_t>(i * channels));
    if (placed_) kept.metres.push_back(from[channels + 1]);
    if (labelled_) kept.labels[i] = static_cast<std::uint8_t>(from[channels]);
  }
  ++figures_.segments;
  figures_.kept += samples;
  handlers.on_segment(std::move(kept));
}

float StreamScreening::gain_of(const StreamSample& sample) const {
  if (!sample.timed || spec_.speed_exponent == 0) return 1;
  const double ratio = std::max(static_cast<double>(sample.speed), kLeastSpeed) / spec_.speed_reference;
  return static_cast<float>(std::pow(ratio, -spec_.speed_exponent));
}

std::size_t StreamScreening::memory_bytes() const {
  return sizeof *this + (screening_ ? screening_->memory_bytes() - sizeof(Screening) : 0) +
         row_.capacity() * sizeof(float) + SampleLines::kMaxLine;
}

std::uint64_t window_bytes(std::uint64_t windows, std::size_t window, std::size_t channels) {
  return windows * (kBytesOfNumber * window * channels + kBytesOfWindow);
}

double bytes_saved(std::uint64_t samples, std::uint64_t windows, std::size_t window, std::size_t channels) {
  if (samples == 0) return 0;
  const auto all = static_cast<double>(samples * kBytesOfNumber * channels);
  return 1 - static_cast<double>(window_bytes(windows, window, channels)) / all;
}

}  // namespace fedge::learn
