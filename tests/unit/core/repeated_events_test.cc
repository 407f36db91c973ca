#include "core/platform/repeated_events.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace fedge;

namespace {

struct EventLines {
  std::vector<std::string> lines;
  RepeatedEvents events{[this](const Event&, const std::string& line) { lines.push_back(line); }};
  void add(const Event& event, double at = 0) { events.add(event, Time(seconds(at))); }
};

Event refused(std::int64_t client, const std::string& reason, Severity severity = Severity::kWarning) {
  return Event{severity, "update.refused", {}}
      .with("round", client)
      .with("client", client)
      .with("reason", reason);
}

}  // namespace

TEST_CASE("repeated events: a few lines of a cause are written, the others are counted") {
  EventLines log;
  for (std::int64_t client = 0; client < 100; ++client) log.add(refused(client, "its value is nan"));
  REQUIRE(log.lines.size() == RepeatedEvents::kShown);
  CHECK(log.lines[2] == "update.refused round=2 client=2 reason=\"its value is nan\"");
  log.events.flush();
  REQUIRE(log.lines.size() == RepeatedEvents::kShown + 1);
  CHECK(log.lines.back() == "... 97 more like this: update.refused reason=\"its value is nan\"");
  log.events.flush();
  CHECK(log.lines.size() == RepeatedEvents::kShown + 1);
}

TEST_CASE("repeated events: distinct ones and informative ones are always written") {
  EventLines log;
  for (int i = 0; i < 10; ++i) {
    log.add(Event{Severity::kInfo, "round.closed", {}}.with("reason", "deadline"));
    log.add(refused(i, std::string("reason ") + static_cast<char>('a' + i)));
    log.add(Event{Severity::kError, "disk.full", {}}.with("reason", "/data/" + std::to_string(i)));
    log.add(Event{Severity::kWarning, "client.refused", {}}.with("code", std::int64_t{i}));
  }
  CHECK(log.lines.size() == 40);
}

TEST_CASE("repeated events: of warnings the numbers in the reason do not matter, of errors they do") {
  EventLines log;
  for (int i = 0; i < 10; ++i)
    log.add(refused(1, "parameter w[" + std::to_string(i) + "] is -" + std::to_string(1.5e9 * i)));
  CHECK(log.lines.size() == RepeatedEvents::kShown);
  for (int i = 0; i < 10; ++i) log.add(refused(1, "parameter " + std::to_string(i), Severity::kError));
  CHECK(log.lines.size() == RepeatedEvents::kShown + 10);
}

TEST_CASE("repeated events: after a minute what was counted is said, and the cause is shown anew") {
  EventLines log;
  for (int i = 0; i < 5; ++i) log.add(refused(i, "x"), 1);
  CHECK(log.lines.size() == 3);
  log.add(Event{Severity::kInfo, "round.closed", {}}, 61);
  REQUIRE(log.lines.size() == 5);
  CHECK(log.lines[3] == "... 2 more like this: update.refused reason=\"x\"");
  log.add(refused(7, "x"), 62);
  CHECK(log.lines.back() == "update.refused round=7 client=7 reason=\"x\"");
}

TEST_CASE("repeated events: of too many causes the oldest is said and forgotten") {
  EventLines log;
  for (int i = 0; i < 4; ++i) log.add(refused(i, "first"), 0);
  for (std::size_t i = 0; i < RepeatedEvents::kMaxCauses; ++i)
    log.add(Event{Severity::kError, "disk.full", {}}.with("reason", std::to_string(i)), 1);
  CHECK(log.lines.size() == 3 + RepeatedEvents::kMaxCauses + 1);
  CHECK(log.lines[log.lines.size() - 2] == "... 1 more like this: update.refused reason=\"first\"");
}
