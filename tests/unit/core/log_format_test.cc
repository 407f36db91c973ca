#include "core/platform/log_format.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace fedge {
namespace {

using std::chrono::milliseconds;
using SystemTime = std::chrono::system_clock::time_point;

SystemTime at(std::int64_t unix_milliseconds) { return SystemTime(milliseconds(unix_milliseconds)); }

}  // namespace

TEST_CASE("log format: times are UTC to the millisecond, whatever the zone") {
  CHECK(utc_text(at(0)) == "1970-01-01T00:00:00.000Z");
  CHECK(utc_text(at(1'764'108'756'616)) == "2025-11-25T22:12:36.616Z");
  CHECK(utc_text(at(4'102'444'800'007)) == "2100-01-01T00:00:00.007Z");
}

TEST_CASE("log format: an event is one JSON object in one line, whatever its text") {
  const Event event = Event{Severity::kWarning, "update.refused", {}}
                          .with("client", std::int64_t{-7})
                          .with("loss", 0.1)
                          .with("norm", std::nan(""))
                          .with("time", std::int64_t{3})
                          .with("reason", "a \"quoted\"\nline\x01 \xff and \\ more");
  const std::string line = json_line(event, at(0));
  CHECK(line.find('\n') == std::string::npos);
  const auto json = nlohmann::json::parse(line);
  CHECK(json["time"] == "1970-01-01T00:00:00.000Z");
  CHECK(json["level"] == "warning");
  CHECK(json["event"] == "update.refused");
  CHECK(json["client"] == -7);
  CHECK(json["loss"] == 0.1);
  CHECK(json["norm"].is_null());
  CHECK(json["time_"] == 3);
  CHECK(json["reason"] == "a \"quoted\"\nline\x01 \xef\xbf\xbd and \\ more");
}

}  // namespace fedge
