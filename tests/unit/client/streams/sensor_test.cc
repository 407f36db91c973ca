// Sensors: a real FIFO or file is read, screened and kept.
#include "client/streams/sensor.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/streams/read_limit.h"
#include "core/rng.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

// A minute of noise with two shocks of half a second.
std::string recording(double start, bool names = true) {
  Rng rng(2);
  std::string text = names ? "seconds,z,label\n" : "";
  for (int i = 0; i < 6000; ++i) {
    const bool shock = (i >= 2000 && i < 2050) || (i >= 4000 && i < 4050);
    text += std::to_string(start + i / 100.0) + "," + std::to_string((shock ? 2.0 : 0.05) * rng.normal()) +
            (shock ? ",1\n" : ",0\n");
  }
  return text;
}

// Collects the reports of a sensor, for a thread that waits for them.
class Reports {
 public:
  Sensor::Handlers handlers() {
    return {.on_kept =
                [this] {
                  const std::lock_guard lock(mutex_);
                  ++kept_;
                  changed_.notify_all();
                },
            .on_event =
                [this](const Event& event) {
                  const std::lock_guard lock(mutex_);
                  events_.push_back(to_string(event));
                  changed_.notify_all();
                }};
  }
  void await_kept(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return kept_ >= count; });
  }
  void await_event(const std::string& part) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return has(part); });
  }
  std::ptrdiff_t count(const std::string& part) {
    const std::lock_guard lock(mutex_);
    return std::ranges::count_if(events_, [&](const std::string& one) { return one.starts_with(part); });
  }
  bool saw(const std::string& part) {
    const std::lock_guard lock(mutex_);
    return has(part);
  }
  std::size_t kept() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

 private:
  bool has(const std::string& part) const {
    return std::ranges::any_of(events_,
                               [&](const std::string& one) { return one.find(part) != std::string::npos; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t kept_ = 0;
  std::vector<std::string> events_;
};

// Writes everything to a FIFO and closes it, as a player does.
void play_to(const std::filesystem::path& fifo, const std::string& text) {
  const int fd = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    REQUIRE(written > 0);
    at += static_cast<std::size_t>(written);
  }
  ::close(fd);
}

void put_file(const std::filesystem::path& path, const std::string& text) {
  REQUIRE(write_file_atomic(path, text));
}

}  // namespace

TEST_CASE("sensor: a device that ends is reported as ended, and not as read until it comes back") {
  const test::TemporaryDirectory state;
  auto sensor = Sensor::open({.name = "road", .source = "/dev/null", .directory = state.path() / "road"});
  REQUIRE_MESSAGE(sensor, sensor.error().message);
  Reports reports;
  (*sensor)->start(reports.handlers());
  reports.await_event("stream.ended ");
  sensor->reset();
  CHECK(reports.count("stream.ended ") == 1);
  CHECK(reports.count("stream.started ") == 1);
}

TEST_CASE("sensor: a FIFO's writer may come and go, and what was kept is on disk") {
  const test::TemporaryDirectory directory;
  const auto fifo = directory.path() / "sensor";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  Reports reports;
  const auto sensor =
      Sensor::open({.name = "road", .source = fifo, .directory = directory.path() / "kept", .test_share = 0});
  REQUIRE(sensor);
  (*sensor)->start(reports.handlers());
  play_to(fifo, recording(0));
  // The second shock of the minute is complete once the clock goes on.
  play_to(fifo, recording(60));
  reports.await_kept(4);
  CHECK((*sensor)->store()->generation() == 4);
  CHECK((*sensor)->store()->for_training() == 4);
  CHECK(reports.saw("stream.started"));
  CHECK_FALSE(reports.saw("stream.fault"));
  CHECK(std::filesystem::exists(directory.path() / "kept" / "train-0000000003.safetensors"));
}

TEST_CASE("sensor: a file is read once, also by the next process, and another file at its path anew") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "drive.csv";
  put_file(file, recording(0));
  const auto read = [&] {
    Reports reports;
    const auto sensor =
        Sensor::open({.name = "road", .source = file, .directory = directory.path() / "kept"});
    REQUIRE(sensor);
    (*sensor)->start(reports.handlers());
    reports.await_event("stream.ended");
    return reports.kept();
  };
  CHECK(read() == 2);
  CHECK(read() == 0);
  put_file(directory.path() / "other.csv", recording(0));
  std::filesystem::rename(directory.path() / "other.csv", file);
  CHECK(read() == 2);
}

TEST_CASE("sensor: faults are reported once with their number, and a silent stream ends at once") {
  const test::TemporaryDirectory directory;
  const auto fifo = directory.path() / "sensor";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  Reports reports;
  {
    const auto sensor =
        Sensor::open({.name = "road", .source = fifo, .directory = directory.path() / "kept"});
    REQUIRE(sensor);
    (*sensor)->start(reports.handlers());
    std::string text = "seconds,z\n";
    for (int i = 0; i < 1000; ++i) text += "1,nan\n";
    play_to(fifo, text);
    reports.await_event("stream.fault");
  }
  CHECK(reports.saw("kind=\"line\""));
  CHECK(reports.saw("stream=\"road\""));
  CHECK(reports.saw("stream.ended"));
  CHECK(reports.kept() == 0);
}

TEST_CASE("sensor: a segment that cannot be kept is reported, and the stream goes on") {
  const test::TemporaryDirectory directory;
  const auto fifo = directory.path() / "sensor";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  Reports reports;
  const auto sensor = Sensor::open({.name = "road", .source = fifo, .directory = directory.path() / "kept"});
  REQUIRE(sensor);
  (*sensor)->start(reports.handlers());
  play_to(fifo, recording(0));
  play_to(fifo, recording(60));
  reports.await_kept(2);
  // Nothing can be written any more, as on a disk that fails; then it can again.
  std::filesystem::rename(directory.path() / "kept", directory.path() / "away");
  play_to(fifo, recording(120));
  reports.await_event("stream.segment_lost");
  std::filesystem::rename(directory.path() / "away", directory.path() / "kept");
  const std::size_t before = reports.kept();
  play_to(fifo, recording(180));
  play_to(fifo, recording(240));
  reports.await_kept(before + 2);
  CHECK((*sensor)->store()->bytes() > 0);
}

TEST_CASE("sensor: a flood is read no faster than the limit") {
  const auto start = ReadLimit::Clock::time_point(std::chrono::hours(1));
  using std::chrono::milliseconds;
  // Short lines, empty ones, long ones, and a line without an end.
  for (const auto& [text, lines] :
       std::vector<std::pair<std::string, std::size_t>>{{"1,2\n3,4\n", 2},
                                                        {std::string(4096, '\n'), 4096},
                                                        {std::string(1023, 'x') + "\n", 4},
                                                        {std::string(4096, '7'), 16}}) {
    CAPTURE(lines);
    ReadLimit limit(10'000, start);
    auto now = start;
    auto second = start;
    std::size_t in_second = 0;
    for (int i = 0; i < 100'000 && now < start + std::chrono::seconds(20); ++i) {
      in_second += lines;
      const auto pause = limit.wait(now, text);
      CHECK(pause <= milliseconds(1000));
      now += pause + std::chrono::microseconds(1);
      if (now - second < std::chrono::seconds(1)) continue;
      CHECK(in_second < 10'000 + lines);
      CHECK(in_second >= 10'000);
      in_second = 0;
      second = now;
    }
    CHECK(now > start + std::chrono::seconds(2));
  }
  // A sensor at its own rate never waits.
  ReadLimit calm(10'000, start);
  for (int i = 0; i < 1000; ++i) CHECK(calm.wait(start + i * milliseconds(100), "1,2\n3,4\n").count() == 0);
}

TEST_CASE("sensor: an option names the data and the source") {
  const auto option = read_sensor_option("road=/dev/ttyACM0");
  REQUIRE(option);
  CHECK(option->name == "road");
  CHECK(option->source == "/dev/ttyACM0");
  for (const char* wrong : {"road", "=x", "road=", "", "../x=y", "a/b=c"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_sensor_option(wrong));
  }
  const test::TemporaryDirectory directory;
  const auto missing = Sensor::open(
      {.name = "road", .source = directory.path() / "none", .directory = directory.path() / "kept"});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  const auto folder =
      Sensor::open({.name = "road", .source = directory.path(), .directory = directory.path() / "kept"});
  REQUIRE_FALSE(folder);
  CHECK(folder.error().message.find("is a directory, not a stream") != std::string::npos);
}

}  // namespace fedge::client
