#include "server/report/event_file.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "tests/unit/learn/idx_fixture.h"
#include "tests/unit/server/report/one_round.h"

using namespace fedge;
using namespace fedge::server;
using learn::test::TemporaryDirectory;

namespace {

// Reads the numbers of a text from its front.
struct EventBytes {
  std::string text;
  std::string take(std::size_t count) {
    REQUIRE(text.size() >= count);
    const std::string front = text.substr(0, count);
    text.erase(0, count);
    return front;
  }
  std::uint64_t fixed(std::size_t size) {
    const std::string bytes = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint64_t byte = fixed(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
};

// Bit by bit, from the definition of CRC-32C.
std::uint32_t crc32c_of(const std::string& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
  }
  return ~crc;
}
std::uint32_t masked_crc(const std::string& bytes) {
  const std::uint32_t crc = crc32c_of(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

struct EventRead {
  double time = 0;
  std::uint64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
};

EventRead read_event(const std::string& event) {
  EventRead read;
  for (EventBytes fields{event}; !fields.text.empty();) {
    const std::uint64_t key = fields.varint();
    if (key == (1 << 3 | 1))
      read.time = std::bit_cast<double>(fields.fixed(8));
    else if (key == (2 << 3 | 0))
      read.step = fields.varint();
    else if (key == (3 << 3 | 2))
      read.version = fields.take(fields.varint());
    else {
      REQUIRE(key == (5 << 3 | 2));
      for (EventBytes values{fields.take(fields.varint())}; !values.text.empty();) {
        REQUIRE(values.varint() == (1 << 3 | 2));
        EventBytes value{values.take(values.varint())};
        REQUIRE(value.varint() == (1 << 3 | 2));
        const std::string tag = value.take(value.varint());
        REQUIRE(value.varint() == (2 << 3 | 5));
        CHECK(!read.scalars.contains(tag));
        read.scalars[tag] = std::bit_cast<float>(static_cast<std::uint32_t>(value.fixed(4)));
        CHECK(value.text.empty());
      }
    }
  }
  return read;
}

std::vector<EventRead> read_events(const std::filesystem::path& path) {
  const auto text = read_file(path, 1 << 20);
  REQUIRE(text);
  std::vector<EventRead> events;
  for (EventBytes records{*text}; !records.text.empty();) {
    const std::string length = records.take(8);
    CHECK(records.fixed(4) == masked_crc(length));
    const std::string event = records.take(EventBytes{length}.fixed(8));
    CHECK(records.fixed(4) == masked_crc(event));
    events.push_back(read_event(event));
  }
  return events;
}

}  // namespace

TEST_CASE("event file: TensorBoard finds each number of a round that was measured, at its step and time") {
  CHECK(crc32c_of("123456789") == 0xe3069283);  // the check value of CRC-32C
  const TemporaryDirectory directory;
  RoundMetrics first = one_round(1);
  first.evaluation = ClientEvaluation{};
  first.evaluation->selected = 300;
  first.evaluation->auroc = 0.5;
  RoundMetrics second = one_round(300);
  second.test_accuracy = second.test_loss = std::numeric_limits<double>::quiet_NaN();
  second.wall_seconds = 12;
  {
    auto file = EventFile::create(directory.path(), 1.75e9);
    REQUIRE(file);
    REQUIRE(file->add(first));
    REQUIRE(file->add(second));
  }
  const auto events = read_events(directory.path() / "events.out.tfevents.fedge");
  REQUIRE(events.size() == 3);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[0].time == 1.75e9);
  CHECK(events[1].step == 1);
  CHECK(events[1].scalars.at("model/test_accuracy") == 0.8125F);
  CHECK(events[1].scalars.at("traffic/bytes_up") == 7968400.0F);
  CHECK(events[1].scalars.at("per_class/class_1_accuracy") == 0.875F);
  CHECK(events[1].scalars.at("evaluation/evaluation_selected") == 300.0F);
  CHECK(events[1].scalars.at("evaluation/evaluation_auroc") == 0.5F);
  CHECK(!events[1].scalars.contains("evaluation/evaluation_rmse"));  // not measured
  CHECK(events[2].step == 300);
  CHECK(events[2].time == 1.75e9 + 12);
  CHECK(!events[2].scalars.contains("model/test_accuracy"));
  CHECK(events[2].scalars.contains("model/train_loss"));
}

TEST_CASE("event file: a file of an earlier run is emptied, and one that cannot be written is named") {
  const TemporaryDirectory directory;
  for (int time = 0; time < 2; ++time) {
    auto file = EventFile::create(directory.path(), 0);
    REQUIRE(file);
    REQUIRE(file->add(one_round(1)));
    CHECK(read_events(directory.path() / kEventFileName).size() == 2);
  }
  const auto refused = EventFile::create(directory.path() / "missing", 0);
  REQUIRE(!refused);
  CHECK(refused.error().message.find("missing/events.out.tfevents.fedge") != std::string::npos);
}
