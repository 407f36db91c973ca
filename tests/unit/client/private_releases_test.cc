#include "client/secure/private_releases.h"

#include <doctest/doctest.h>

#include <string>

#include "core/platform/files.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

constexpr RunId kPrivateRun{11};
TaskId task(std::uint32_t round, std::uint32_t track = 0) { return {RoundNumber(round), TrackId(track)}; }

}  // namespace

TEST_CASE("private releases: no more updates are sent than a run's privacy allows, whatever was restarted") {
  const test::TemporaryDirectory state;
  for (std::uint32_t round = 1; round <= 3; ++round) {
    auto releases = PrivateReleases::read(state.path());
    REQUIRE(releases);
    CHECK(releases->admit(kPrivateRun, task(round), 3));
    CHECK(releases->count({kPrivateRun, task(round), round}, 3));
  }
  auto releases = PrivateReleases::read(state.path());
  REQUIRE(releases);
  const auto admitted = releases->admit(kPrivateRun, task(4), 3);
  REQUIRE_FALSE(admitted);
  CHECK(admitted.error().message.find("the 3 updates that the run's privacy allows") != std::string::npos);
  CHECK_FALSE(releases->count({kPrivateRun, task(4), 4}, 3));
  // Another run has its own.
  CHECK(releases->admit(RunId(12), task(1), 3));
}

TEST_CASE("private releases: the same update once more is no other, another for the same task is") {
  const test::TemporaryDirectory state;
  auto releases = PrivateReleases::read(state.path());
  REQUIRE(releases);
  CHECK(releases->count({kPrivateRun, task(1), 5}, 2));
  CHECK(releases->count({kPrivateRun, task(1), 5}, 2));
  CHECK(releases->admit(kPrivateRun, task(2), 2));
  CHECK(releases->count({kPrivateRun, task(1), 6}, 2));
  // Both are spent: the last task may be tried again, and nothing else may.
  CHECK(releases->admit(kPrivateRun, task(1), 2));
  CHECK_FALSE(releases->admit(kPrivateRun, task(1, 1), 2));
  CHECK(releases->count({kPrivateRun, task(1), 6}, 2));
  CHECK_FALSE(releases->count({kPrivateRun, task(1), 7}, 2));
}

TEST_CASE("private releases: a damaged file ends the part in such runs, and is named") {
  const test::TemporaryDirectory state;
  for (const char* text : {"11 1 1 0\n", "11 1 1 0 5 6\n", "x 1 1 0 5\n", "11 -\n"}) {
    CAPTURE(text);
    REQUIRE(write_file_atomic(state.path() / "private-releases", text));
    const auto releases = PrivateReleases::read(state.path());
    REQUIRE_FALSE(releases);
    CHECK(releases.error().code == ErrorCode::kCorrupt);
    CHECK(releases.error().message.find("private-releases is damaged") != std::string::npos);
  }
}

TEST_CASE("private releases: what cannot be written down is not sent") {
  const test::TemporaryDirectory state;
  auto releases = PrivateReleases::read(state.path() / "gone");
  REQUIRE(releases);
  CHECK_FALSE(releases->count({kPrivateRun, task(1), 5}, 1));
  CHECK(releases->admit(kPrivateRun, task(1), 1));
}

}  // namespace fedge::client
