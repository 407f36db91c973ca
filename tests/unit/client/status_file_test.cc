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

}  // namespace fedge::client
