#include "client/diagnosis/status_file.h"

#include <doctest/doctest.h>

#include <string>

#include "client/client_engine.h"
#include "core/platform/files.h"
#include "protocol/limits.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {

TEST_CASE("status file: every run is there with its work and its task, also sixteen with the longest names") {
  const test::TemporaryDirectory state;
  Activity activity{.link = "online", .runs = {{"first", "training", TaskId{RoundNumber(3), TrackId(2)}}}};
  activity.runs.push_back({"second", "rejected", std::nullopt, "no noise"});
  // Quotes are the permitted characters of a name that take most space in JSON.
  while (activity.runs.size() < kMaxRuns)
    activity.runs.push_back({std::string(protocol::kMaxText, '"'), "idle", std::nullopt});
  StatusFile file(state.path());
  file.set(activity);
  file.write();
  const auto read = read_status(state.path());
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(read->activity == activity);
}

TEST_CASE("status file: one that names more runs than there can be, or a run without a name, is damaged") {
  const test::TemporaryDirectory state;
  StatusFile file(state.path());
  file.set({.link = "online", .runs = {{"first", "idle", std::nullopt}}});
  file.write();
  const auto whole = read_file(status_file(state.path()), 1 << 16);
  REQUIRE(whole);
  const auto reads = [&](const std::string& runs) {
    std::string text = *whole;
    const auto begin = text.find("\"runs\"");
    REQUIRE(begin != std::string::npos);
    REQUIRE(write_file_atomic(status_file(state.path()), text.substr(0, begin) + "\"runs\": " + runs + "}"));
    return read_status(state.path()).has_value();
  };
  const std::string run = R"({"name": "a", "work": "idle"})";
  std::string many = run;
  for (int i = 1; i < 16; ++i) many += "," + run;
  CHECK(reads("[" + many + "]"));
  CHECK_FALSE(reads("[" + many + "," + run + "]"));
  CHECK_FALSE(reads(R"([{"work": "idle"}])"));
  CHECK_FALSE(reads("[7]"));
  CHECK_FALSE(reads("7"));
}

TEST_CASE("status file: a stream is there with what was kept of it and what went wrong last") {
  const test::TemporaryDirectory state;
  StatusFile file(state.path());
  const auto event = [](const char* name) { return Event{Severity::kInfo, name, {}}.with("stream", "road"); };
  file.note(event("stream.started").with("source", "/dev/imu").with("segment_bytes", std::int64_t{4096}));
  file.note(event("stream.kept").with("segment_bytes", std::int64_t{8192}));
  file.note(event("stream.fault").with("kind", "line").with("reason", "no number: \x1b[31m"));
  file.note(event("stream.kept").with("segment_bytes", std::int64_t{12288}));
  file.write();
  auto read = read_status(state.path());
  REQUIRE_MESSAGE(read, read.error().message);
  REQUIRE(read->streams.size() == 1);
  const StreamActivity& stream = read->streams[0];
  CHECK(stream.name == "road");
  CHECK(stream.state == "reading");
  CHECK(stream.source == "/dev/imu");
  CHECK(stream.kept == 2);
  CHECK(stream.bytes == 12288);
  CHECK(stream.kept_at > 0);
  CHECK(stream.fault.find("no number") != std::string::npos);
  CHECK(stream.fault.find('\x1b') == std::string::npos);
  CHECK(stream.fault_at > 0);

  // After a restart of the source its figures go on.
  file.note(event("stream.ended"));
  file.write();
  CHECK(read_status(state.path())->streams[0].state == "ended");
  file.note(event("stream.started").with("source", "/dev/imu").with("segment_bytes", std::int64_t{12288}));
  file.write();
  CHECK(read_status(state.path())->streams[0].state == "reading");
  CHECK(read_status(state.path())->streams[0].kept == 2);
}

TEST_CASE("status file: one of a daemon that knew no streams is read, and one with too many is damaged") {
  const test::TemporaryDirectory state;
  StatusFile file(state.path());
  for (std::size_t i = 0; i < kMaxStreams + 1; ++i)
    file.note(Event{Severity::kInfo, "stream.started", {}}.with("stream", std::to_string(i)));
  file.write();
  const auto read = read_status(state.path());
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(read->streams.size() == kMaxStreams);
  const auto whole = read_file(status_file(state.path()), 1 << 16);
  REQUIRE(whole);
  const auto reads = [&](const std::string& streams) {
    const auto begin = whole->find(",\n \"streams\"");
    REQUIRE(begin != std::string::npos);
    REQUIRE(write_file_atomic(status_file(state.path()), whole->substr(0, begin) + streams + "}"));
    return read_status(state.path()).has_value();
  };
  CHECK(reads(""));
  CHECK(reads(", \"streams\": []"));
  const std::string one =
      R"({"name": "a", "state": "ended", "source": "-", "kept": 0, "kept_at": 0, "bytes": 0, "fault": "", "fault_at": 0})";
  std::string many = one;
  for (std::size_t i = 1; i < kMaxStreams; ++i) many += "," + one;
  CHECK(reads(", \"streams\": [" + many + "]"));
  CHECK_FALSE(reads(", \"streams\": [" + many + "," + one + "]"));
  CHECK_FALSE(reads(R"(, "streams": [{"name": "a"}])"));
  CHECK_FALSE(reads(R"(, "streams": 7)"));
}

}  // namespace fedge::client
