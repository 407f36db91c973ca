// SampleLines: reads the lines of a sensor's stream, which are a CSV file without an end. The first line
// names the columns: "seconds" and the sensor's channels, in any order. These columns may follow:
//   label    the class of the sample, an integer from 0 to 255
//   speed    of the vehicle, in metres per second
//   metres   its position on the road
// A stream may name its columns again, as it does when its writer is restarted. A line that neither is a
// sample nor has a field "seconds" is skipped, and reported. Memory: one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fedge::learn {

struct StreamSample {
  double seconds = 0;
  std::vector<float> channels;
  std::uint8_t label = 0;
  bool labelled = false;
  float speed = 0;
  bool timed = false;  // the stream has the column of speeds
  float metres = 0;
  bool placed = false;  // the stream has the column of positions
};

class SampleLines {
 public:
  static constexpr std::size_t kMaxLine = 4096;
  static constexpr double kMostValue = 1e9;  // magnitude of a number of the sensor

  // Empty: all columns that have no meaning of their own, as the first line names them.
  explicit SampleLines(std::vector<std::string> channels) : wanted_(std::move(channels)) {}

  // `broken` is called with what is wrong with a line, for example "the field of z is \"nan\", ...".
  using OnSample = std::function<void(const StreamSample&)>;
  using OnBroken = std::function<void(const std::string&)>;
  void push(std::string_view bytes, const OnSample& on_sample, const OnBroken& on_broken);
  // The stream has ended; what follows is a stream of its own. A last line without its end is a line.
  void end(const OnSample& on_sample, const OnBroken& on_broken);

  // Empty before the first line.
  const std::vector<std::string>& channels() const { return channels_; }

 private:
  enum class Column : std::uint8_t { kOther, kSeconds, kChannel, kLabel, kSpeed, kMetres };
  struct Place {
    Column column = Column::kOther;
    std::size_t channel = 0;
  };

  void take(std::string_view line, const OnSample& on_sample, const OnBroken& on_broken);
  std::string read_names(const std::vector<std::string_view>& names);
  std::string read_values(const std::vector<std::string_view>& fields);

  std::vector<std::string> wanted_;
  std::vector<std::string> channels_;
  std::vector<Place> places_;  // by field
  std::string rest_;           // of a line whose end has not come
  bool too_long_ = false;      // the rest of this line is skipped
  StreamSample sample_;
};

}  // namespace fedge::learn
