#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "sim/availability/availability.h"
#include "sim/availability/trace.h"
#include "tests/support/tiny_dataset.h"
#include "tests/unit/sim/phase_at.h"

using namespace fedge;
using sim::Availability;
using sim::AvailabilityKind;
using sim::AvailabilitySpec;

namespace {

const std::string kHeader = "client,up_seconds,down_seconds\n";

struct TraceFile {
  test::TemporaryDirectory directory;
  std::string path = (directory.path() / "trace.csv").string();

  explicit TraceFile(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  Result<std::unique_ptr<Availability>> load(double period = 0, std::size_t clients = 3) const {
    const AvailabilitySpec spec{.kind = AvailabilityKind::kTrace, .file = path, .period = seconds(period)};
    return sim::make_availability(spec, {clients, nullptr}, Rng(1));
  }
};

bool up_at(const Availability& availability, std::uint32_t client, Time time) {
  return test::phase_at(availability, ClientId(client), time).up;
}

constexpr Duration kTick{1};

}  // namespace

TEST_CASE("trace: a device is up from the first moment of an interval to the last before its end") {
  const TraceFile file(kHeader + "0,0,5\n0,10,20.5\n2,7,8\n");
  const auto availability = file.load();
  REQUIRE_MESSAGE(availability, availability.error().message);
  const auto up = [&](std::uint32_t client, Time time) { return up_at(**availability, client, time); };
  CHECK(up(0, Time{}));
  CHECK(up(0, Time(seconds(5)) - kTick));
  CHECK(!up(0, Time(seconds(5))));
  CHECK(!up(0, Time(seconds(10)) - kTick));
  CHECK(up(0, Time(seconds(10))));
  CHECK(up(0, Time(seconds(20.5)) - kTick));
  CHECK(!up(0, Time(seconds(20.5))));
  CHECK(!up(2, Time{}));
  CHECK(up(2, Time(seconds(7))));
  // The last interval has no successor; a client without a line is never up.
  CHECK(!test::phase_at(**availability, ClientId(0), Time(seconds(21))).until);
  CHECK(!(*availability)->first(ClientId(1)).up);
  CHECK(!(*availability)->first(ClientId(1)).until);
}

TEST_CASE("trace: it repeats with its period, as time modulo period does") {
  const std::vector<std::vector<std::pair<double, double>>> intervals = {
      {{1, 2}, {4, 7}, {9, 10}}, {{0, 3}, {8, 10}}, {{0, 2}, {3, 4}}};
  std::string text = kHeader;
  for (std::size_t c = 0; c < intervals.size(); ++c)
    for (const auto& [from, to] : intervals[c])
      text += std::to_string(c) + "," + std::to_string(from) + "," + std::to_string(to) + "\n";
  const auto availability = TraceFile(text).load(10);
  REQUIRE_MESSAGE(availability, availability.error().message);
  for (std::uint32_t c = 0; c < 3; ++c) {
    sim::Phase last{.up = false, .until = Time{}};
    for (int tick = 0; tick < 1000; ++tick) {
      const double time = tick * 0.125;
      const double within = std::fmod(time, 10.0);
      bool expected = false;
      for (const auto& [from, to] : intervals[c]) expected = expected || (from <= within && within < to);
      const sim::Phase phase = test::phase_at(**availability, ClientId(c), Time(seconds(time)));
      REQUIRE(phase.up == expected);
      // A phase ends where one of the other kind begins, also across periods.
      if (phase.until != last.until && tick > 0) REQUIRE(phase.up != last.up);
      last = phase;
    }
  }
}

TEST_CASE("trace: intervals that touch are one, and one that fills the period never ends") {
  const auto touching = TraceFile(kHeader + "0,1,2\n0,2,3\n").load();
  REQUIRE(touching);
  CHECK(test::phase_at(**touching, ClientId(0), Time(seconds(1))).until == Time(seconds(3)));
  const auto filling = TraceFile(kHeader + "0,0,4\n0,4,10\n").load(10);
  REQUIRE(filling);
  CHECK((*filling)->first(ClientId(0)).up);
  CHECK(!(*filling)->first(ClientId(0)).until);
}

TEST_CASE("trace: lines may end as they do elsewhere, and may be of clients that the run has not") {
  const auto availability =
      TraceFile("client,up_seconds,down_seconds\r\n0,1,2\r\n1,3,4\r\n7,0,1\r\n7,2,3").load(0, 2);
  REQUIRE_MESSAGE(availability, availability.error().message);
  CHECK(up_at(**availability, 0, Time(seconds(1))));
  CHECK(up_at(**availability, 1, Time(seconds(3))));
}

TEST_CASE("trace: lines are read whole across the pieces that the file is read in") {
  std::string text = kHeader;
  for (int i = 0; i < 20'000; ++i)
    text += "0," + std::to_string(2 * i) + "," + std::to_string(2 * i + 1) + "\n";
  REQUIRE(text.size() > 3 * 65'536);
  const TraceFile file(text);
  const auto loaded = sim::IntervalTable::load(file.path, 1, {});
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  const auto intervals = loaded->of(ClientId(0));
  REQUIRE(intervals.size() == 20'000);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    REQUIRE(intervals[i].up == Time(std::chrono::seconds(2 * i)));
    REQUIRE(intervals[i].down == Time(std::chrono::seconds(2 * i + 1)));
  }
}

TEST_CASE("trace: every error names the line and what is wrong with it") {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", ":1: the header is \"\"; expected client,up_seconds,down_seconds"},
      {"id,up,down\n", ":1: the header is \"id,up,down\"; expected client,up_seconds,down_seconds"},
      {kHeader + "0,1\n", ":2: the line has 2 fields; expected 3: client,up_seconds,down_seconds"},
      {kHeader + "0,1,2,3\n", ":2: the line has 4 fields; expected 3: client,up_seconds,down_seconds"},
      {kHeader + "0,1,2\n\n0,3,4\n", ":3: the line has 1 fields; expected 3: client,up_seconds,down_seconds"},
      {kHeader + "x,1,2\n", ":2: client \"x\" is not an integer from 0 to 4294967295"},
      {kHeader + "-1,1,2\n", ":2: client \"-1\" is not an integer from 0 to 4294967295"},
      {kHeader + "4294967296,1,2\n", ":2: client \"4294967296\" is not an integer from 0 to 4294967295"},
      {kHeader + "1.5,1,2\n", ":2: client \"1.5\" is not an integer from 0 to 4294967295"},
      {kHeader + "0,one,2\n", ":2: up_seconds \"one\" is not a number of seconds"},
      {kHeader + "0,1,2s\n", ":2: down_seconds \"2s\" is not a number of seconds"},
      {kHeader + "0,1, 2\n", ":2: down_seconds \" 2\" is not a number of seconds"},
      {kHeader + "0,,2\n", ":2: up_seconds \"\" is not a number of seconds"},
      {kHeader + "0,nan,2\n", ":2: up_seconds \"nan\" is not between 0 and 4e9 seconds"},
      {kHeader + "0,-1,2\n", ":2: up_seconds \"-1\" is not between 0 and 4e9 seconds"},
      {kHeader + "0,1,4000000001\n", ":2: down_seconds \"4000000001\" is not between 0 and 4e9 seconds"},
      {kHeader + "0,1,inf\n", ":2: down_seconds \"inf\" is not between 0 and 4e9 seconds"},
      {kHeader + "0,2,2\n", ":2: down_seconds \"2\" must be greater than up_seconds \"2\""},
      {kHeader + "0,1,2\n0,1.5,3\n",
       ":3: up_seconds is before the end of the client's previous interval; intervals of a client must not "
       "overlap"},
      {kHeader + "1,1,2\n0,1,2\n", ":3: client 0 follows client 1; sort the lines by client, then by time"},
      {kHeader + "0,1,\x1b[2J\n", ":2: down_seconds \"?[2J\" is not a number of seconds"},
      {kHeader + "0,1," + std::string(300, '0') + "\n", ":2: the line is longer than 256 bytes"},
      {kHeader + std::string(200'000, '0'), ":2: the line is longer than 256 bytes"}};
  for (const auto& [text, message] : wrong) {
    const TraceFile file(text);
    const auto loaded = file.load();
    REQUIRE_MESSAGE(!loaded, message);
    CHECK(loaded.error().message == file.path + message);
  }
  const TraceFile late(kHeader + "0,1,11\n");
  const auto beyond = late.load(10);
  REQUIRE(!beyond);
  CHECK(beyond.error().message ==
        late.path +
            ":2: down_seconds is greater than simulation.availability.period_seconds, which is 10.000000");
}

TEST_CASE("trace: a file that is missing, or too large to be read, is named") {
  const auto missing = sim::IntervalTable::load("/nowhere/trace.csv", 1, {});
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  const TraceFile file(kHeader);
  std::filesystem::resize_file(file.path, (std::uint64_t{1} << 30) + 1);  // sparse
  const auto large = sim::IntervalTable::load(file.path, 1, {});
  REQUIRE(!large);
  CHECK(large.error().message == file.path + " has 1073741825 bytes; a trace file may have at most 1 GiB");
}

TEST_CASE("trace: damaged files are read or refused with their line, whatever the damage") {
  const std::string good = kHeader + "0,0,5\n0,10,20.5\n1,3,4\n2,7,8\n2,9,10000\n";
  const std::string bytes("0123456789,.-\n\r\0\xff e", 19);
  Rng rng(3);
  std::size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = good;
    for (std::uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
      const std::size_t at = rng.below(damaged.size());
      const char byte = bytes[rng.below(bytes.size())];
      if (rng.below(3) == 0)
        damaged.erase(at, 1 + rng.below(5));
      else if (rng.below(2) == 0)
        damaged.insert(at, 1, byte);
      else
        damaged[at] = byte;
    }
    const TraceFile file(damaged);
    const auto table = sim::IntervalTable::load(file.path, 3, {});
    if (!table) {
      ++refused;
      REQUIRE(table.error().message.rfind(file.path + ":", 0) == 0);
      continue;
    }
    for (std::uint32_t c = 0; c < 3; ++c) {
      Time last{};
      for (const sim::Interval& interval : table->of(ClientId(c))) {
        REQUIRE(interval.up >= last);
        REQUIRE(interval.down > interval.up);
        last = interval.down;
      }
    }
  }
  CHECK(refused > 500);
  CHECK(refused < 1990);
}

TEST_CASE("trace: the example is one that can be read") {
  const auto table = sim::IntervalTable::load(
      std::string(FEDGE_SOURCE_DIR) + "/examples/availability/two_days.csv", 12, seconds(172'800));
  REQUIRE_MESSAGE(table, table.error().message);
  for (std::uint32_t c = 0; c < 12; ++c) CHECK(!table->of(ClientId(c)).empty());
}
