// StreamScreening: the text of a sensor's stream in, segments around its events out: SampleLines, the rules
// of the clock, Screening. A pure state machine: any division of the text gives the same bits.
//
// The clock of the stream is its column "seconds". A step longer than gap_seconds, a step back, a line that
// is no sample, and a rate other than the declared one end the piece of the stream: no event and no context
// reaches over such a place. While the rate is wrong nothing is kept, because a window would cover another
// time than the model expects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "learn/screening/sample_lines.h"
#include "learn/screening/screening.h"
#include "learn/screening/stream_spec.h"

namespace fedge::learn {

// Samples around an event.
struct KeptSegment {
  double seconds = 0;             // of its first sample, by the stream's clock
  std::uint64_t begin = 0;        // number of its first sample among those that were screened
  std::uint64_t event_begin = 0;  // the event without context
  std::uint64_t event_end = 0;    // one past its last sample
  bool continued = false;         // the event of the segment before goes on
  std::size_t channels = 1;
  std::vector<float> values;         // samples x channels
  std::vector<std::uint8_t> labels;  // one for each sample; empty: the stream has none
  std::vector<float> metres;         // positions, one for each sample; empty: unknown
  std::size_t samples() const { return values.size() / channels; }
};

// A part of a segment of a fixed length, with samples of zeros around it if the segment is shorter.
struct StreamWindow {
  double seconds = 0;     // of its first sample, also of a padded one
  std::size_t begin = 0;  // the samples that are no padding
  std::size_t end = 0;
  std::vector<float> values;         // `window` x channels
  std::vector<std::uint8_t> labels;  // `window`, or empty; padding is class 0
  // Positions of the first and last sample that are no padding; nothing: unknown.
  std::optional<std::array<double, 2>> metres;
};
// A segment of up to `window` samples becomes one window, in its middle. A longer one becomes windows that
// begin half a window apart, the last of which ends with the segment. Padding has the mean of each channel.
std::vector<StreamWindow> windows_of(const KeptSegment& segment, std::size_t window, double rate_hz);
// The number of these windows.
std::size_t window_count(std::size_t samples, std::size_t window);

struct StreamFigures {
  std::uint64_t samples = 0;  // that were screened
  std::uint64_t broken = 0;   // lines that are no sample
  std::uint64_t gaps = 0;
  std::uint64_t clock_steps = 0;  // back
  std::uint64_t wrong_rate = 0;   // samples that were left out because the rate was wrong
  std::uint64_t segments = 0;
  std::uint64_t kept = 0;  // samples in segments
  bool operator==(const StreamFigures&) const = default;
};

class StreamScreening {
 public:
  explicit StreamScreening(StreamSpec spec) : spec_(std::move(spec)), lines_(spec_.channels) {}

  struct Handlers {
    std::function<void(KeptSegment)> on_segment;
    // Something about the stream is wrong; called for every occurrence. `kind`: "line", "gap", "clock" or
    // "rate".
    std::function<void(const char* kind, const std::string& what)> on_fault = {};
    // A sample was screened, with this number and label.
    std::function<void(std::uint64_t number, std::uint8_t label)> on_sample = {};
  };
  void push(std::string_view text, const Handlers& handlers);
  // Samples up to this time of the stream's clock are left out: they are known already.
  void skip_until(double seconds) { skip_until_ = seconds; }
  // Nothing has come for a while: what is open is complete.
  void pause(const Handlers& handlers);
  // The stream has ended.
  void end(const Handlers& handlers);

  const StreamSpec& spec() const { return spec_; }
  const StreamFigures& figures() const { return figures_; }
  // Columns of the sensor; empty before the first line.
  const std::vector<std::string>& channels() const { return lines_.channels(); }
  // Seconds of the samples that were screened, by the declared rate.
  double screened_seconds() const { return static_cast<double>(figures_.samples) / spec_.screening.rate_hz; }
  std::size_t memory_bytes() const;

 private:
  void take(const StreamSample& sample, const Handlers& handlers);
  double follow_clock(const StreamSample& sample, const Handlers& handlers);
  bool follow_rate(double step, const Handlers& handlers);
  bool begin_screening(const Handlers& handlers);
  void interrupt(const Handlers& handlers);
  void emit(const Segment& segment, const Handlers& handlers);
  float gain_of(const StreamSample& sample) const;

  StreamSpec spec_;
  SampleLines lines_;
  std::optional<Screening> screening_;
  StreamFigures figures_;
  std::vector<float> row_;  // of the screening: channels, label, metres, gain
  bool labelled_ = false;
  bool placed_ = false;
  bool broken_ = false;  // the rules do not fit the stream's columns
  double last_seconds_ = 0;
  double screened_at_ = 0;   // seconds of the last sample that was screened
  bool begun_ = false;       // last_seconds_ is that of the sample before, in the same piece
  std::uint64_t block_ = 0;  // steps since the rate was last measured, and their sum
  double block_seconds_ = 0;
  bool wrong_rate_ = false;
  std::optional<double> skip_until_;
};

// Bytes that a device would send for its windows: 16 bits for each number, and 32 bytes that describe a
// window.
std::uint64_t window_bytes(std::uint64_t windows, std::size_t window, std::size_t channels);
// The fraction of the stream's bytes, at 16 bits for each number, that need not be sent. Below 0 if windows
// have more.
double bytes_saved(std::uint64_t samples, std::uint64_t windows, std::size_t window, std::size_t channels);

}  // namespace fedge::learn
