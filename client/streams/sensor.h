// Sensor: reads the stream of one of the device's sensors, screens it (learn/screening/), and keeps the
// segments around its events as the device's own data. On a thread of its own, which waits for the stream.
//
// The source is a FIFO, a character device, a regular file or standard input. A FIFO has no end: its writer
// may come and go. A device that ends is opened again, every five seconds. A regular file is read once: after
// a restart, what was kept of it is left out. The thread reads at most kMostRates lines for each sample that
// the sensor should deliver, or one piece of 4 KiB, in a second, so that a flood cannot take the processor;
// its writer then waits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/event.h"
#include "core/result.h"
#include "learn/screening/segment_store.h"
#include "learn/screening/stream_spec.h"

namespace fedge::client {

struct SensorOptions {
  std::string name;              // of the data, for runs that name it
  std::filesystem::path source;  // "-": standard input
  std::filesystem::path directory;
  learn::StreamSpec spec = {};
  std::uint64_t most_bytes = std::uint64_t{64} << 20;  // of the segments, on disk
  double test_share = 0.2;                             // of the events
};

// Parses "NAME=PATH". kInvalid without a name or a path.
Result<SensorOptions> read_sensor_option(const std::string& text);

class Sensor {
 public:
  static constexpr double kMostRates = 100;
  static constexpr int kSilentMilliseconds = 5000;  // without samples, until what is open is complete

  // Opens source and directory; `spec` comes from read_stream_file(), or is the default. kNotFound if there
  // is no source.
  static Result<std::unique_ptr<Sensor>> open(const SensorOptions& options);
  // Ends the thread.
  ~Sensor();
  Sensor(const Sensor&) = delete;
  Sensor& operator=(const Sensor&) = delete;

  // Called on the thread of the stream.
  struct Handlers {
    std::function<void()> on_kept;               // a segment is durable
    std::function<void(const Event&)> on_event;  // with the stream's name
  };
  void start(Handlers handlers);

  const std::string& name() const;
  const std::shared_ptr<learn::SegmentStore>& store() const;

 private:
  class Reader;
  explicit Sensor(std::unique_ptr<Reader> reader);
  std::unique_ptr<Reader> reader_;
};

}  // namespace fedge::client
