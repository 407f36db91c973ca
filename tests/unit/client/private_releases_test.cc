#include "client/secure/private_releases.h"

#include <doctest/doctest.h>

#include <string>

#include "core/platform/files.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

constexpr RunId kPrivateRun{11};
TaskId release_task(std::uint32_t round, std::uint32_t track = 0) {
  return {RoundNumber(round), TrackId(track)};
}

}  // namespace

TEST_CASE("private releases: no more updates are sent than a run's privacy allows, whatever was restarted") {
  const test::TemporaryDirectory state;
  for (std::uint32_t round = 1; round <= 3; ++round) {
    auto releases = PrivateReleases::read(state.path());
    REQUIRE(releases);
    CHECK(releases->admit(kPrivateRun, release_task(round), 3));
    CHECK(releases->count({kPrivateRun, release_task(round), round}, {.most = 3}));
  }
  auto releases = PrivateReleases::read(state.path());
  REQUIRE(releases);
  const auto admitted = releases->admit(kPrivateRun, release_task(4), 3);
  REQUIRE_FALSE(admitted);
  CHECK(admitted.error().message.find("3 updates, the limit of differential_privacy.max_participations") !=
        std::string::npos);
  CHECK_FALSE(releases->count({kPrivateRun, release_task(4), 4}, {.most = 3}));
  // Another run has its own limit.
  CHECK(releases->admit(RunId(12), release_task(1), 3));
}

TEST_CASE("private releases: the same update once more is no other, another for the same task is") {
  const test::TemporaryDirectory state;
  auto releases = PrivateReleases::read(state.path());
  REQUIRE(releases);
  CHECK(releases->count({kPrivateRun, release_task(1), 5}, {.most = 2}));
  CHECK(releases->count({kPrivateRun, release_task(1), 5}, {.most = 2}));
  CHECK(releases->admit(kPrivateRun, release_task(2), 2));
  CHECK(releases->count({kPrivateRun, release_task(1), 6}, {.most = 2}));
  // Both updates of the budget are used: only the last task may be repeated.
  CHECK(releases->admit(kPrivateRun, release_task(1), 2));
  CHECK_FALSE(releases->admit(kPrivateRun, release_task(1, 1), 2));
  CHECK(releases->count({kPrivateRun, release_task(1), 6}, {.most = 2}));
  CHECK_FALSE(releases->count({kPrivateRun, release_task(1), 7}, {.most = 2}));
}

TEST_CASE("private releases: a damaged file ends the part in such runs, and is named") {
  const test::TemporaryDirectory state;
  for (const char* text :
       {"11 1 1 1 0 5\n", "11 1 1 1 0 5 6 7 8\n", "x 1 1 1 0 5 6\n", "11 -\n", "11 1 1 1 0 5 -6\n",
        "11 1 1 1 0 5 6 x\n", "11 1 1 1 0 5 6 5\n", "11 1 1 1 0 5 0 -1\n"}) {
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
  CHECK_FALSE(releases->count({kPrivateRun, release_task(1), 5}, {.most = 1}));
  CHECK(releases->admit(kPrivateRun, release_task(1), 1));
}

TEST_CASE("private releases: what all runs of a coordinator tell together counts against a client's limit") {
  const test::TemporaryDirectory state;
  const auto counted = [&](RunId run, std::uint32_t round, double noise, double most) {
    auto releases = PrivateReleases::read(state.path());
    REQUIRE(releases);
    return releases->count({run, release_task(round), round, {noise, noise}},
                           {.most = 100, .max_epsilon = most, .delta = 1e-5});
  };
  // A hundred updates with noise 10 equal one with noise 1: epsilon 4.377178 at delta 1e-5. So do fifty with
  // noise 10 together with two hundred with noise 20.
  for (std::uint32_t round = 1; round <= 50; ++round) REQUIRE(counted(RunId(1), round, 10, 4.38));
  for (std::uint32_t round = 1; round <= 99; ++round) REQUIRE(counted(RunId(2), round, 20, 4.38));
  for (std::uint32_t round = 1; round <= 100; ++round) REQUIRE(counted(RunId(3), round, 20, 4.38));
  CHECK(counted(RunId(2), 100, 20, 4.3772));
  for (const RunId run : {RunId(1), RunId(4)}) {
    const auto refused = counted(run, 101, 10, 4.3772);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kRefused);
    CHECK(refused.error().message.find("--max-epsilon 4.3772") != std::string::npos);
  }
  const auto releases = PrivateReleases::read(state.path());
  CHECK(*releases->epsilon({RunId(1), {10, 10}, 50}, 1e-5) == doctest::Approx(4.377178).epsilon(1e-6));
  CHECK(*releases->epsilon({RunId(4), {10, 10}, 1}, 1e-5) > 4.3772);
}

TEST_CASE(
    "private releases: sums that clients' noise hides count together against a client's limit, in all runs") {
  const test::TemporaryDirectory state;
  const auto counted = [&](RunId run, std::uint32_t round, PrivateReleases::Noise noise, double most) {
    auto releases = PrivateReleases::read(state.path());
    REQUIRE(releases);
    return releases->count({run, release_task(round), round, noise},
                           {.most = 100, .require_noise = most, .delta = 1e-5});
  };
  // As above, but the first run hides its updates by the client's own noise, the second by the noise of all
  // clients in a sum.
  for (std::uint32_t round = 1; round <= 50; ++round) REQUIRE(counted(RunId(1), round, {10, 10}, 4.38));
  for (std::uint32_t round = 1; round <= 50; ++round) REQUIRE(counted(RunId(2), round, {0, 10}, 4.3772));
  for (const RunId run : {RunId(1), RunId(2), RunId(3)}) {
    const auto refused = counted(run, 101, {0, 10}, 4.3772);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kRefused);
    CHECK(refused.error().message.find("--require-noise 4.3772") != std::string::npos);
  }
  // If only the client's own noise counts, it has released the first run's updates: 50 with noise 10 equal
  // one with noise 1.4142, epsilon 2.943225 at delta 1e-5.
  const auto releases = PrivateReleases::read(state.path());
  CHECK(*releases->epsilon({RunId(1), {10, 10}, 50}, 1e-5) == doctest::Approx(2.943225).epsilon(1e-6));
  CHECK(*releases->epsilon_in_sums({RunId(1), {10, 10}, 50}, 1e-5) ==
        doctest::Approx(4.377178).epsilon(1e-6));
}

TEST_CASE("private releases: the same update under less noise counts again, and what had noise keeps it") {
  const test::TemporaryDirectory state;
  auto releases = PrivateReleases::read(state.path());
  REQUIRE(releases);
  const PrivateReleases::Limits limits{.most = 2, .require_noise = 4.38, .delta = 1e-5};
  // Two updates with noise 2 equal one with noise 1.4142.
  REQUIRE(releases->count({kPrivateRun, release_task(1), 5, {0, 2}}, limits));
  REQUIRE(releases->count({kPrivateRun, release_task(2), 6, {0, 2}}, limits));
  CHECK(*releases->epsilon_in_sums({kPrivateRun, {0, 2}, 2}, 1e-5) < 3);
  // The last update is repeated with a description of fewer clients; then of so few that it exceeds the
  // limit.
  CHECK(releases->count({kPrivateRun, release_task(2), 6, {0, 1.5}}, limits));
  const auto refused = releases->count({kPrivateRun, release_task(2), 6, {0, 1}}, limits);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("--require-noise 4.38") != std::string::npos);
  // Another run counts them with noise 1.5: together with its own update, three updates of noise 1.5.
  releases = PrivateReleases::read(state.path());
  CHECK(*releases->epsilon_in_sums({RunId(12), {0, 1.5}, 1}, 1e-5) ==
        doctest::Approx(*releases->epsilon_in_sums({kPrivateRun, {0, 1.5}, 3}, 1e-5)));
  // A run with local noise is later described as one of sums: the earlier updates keep counting.
  REQUIRE(releases->count({RunId(13), release_task(1), 7, {4, 4}}, {.most = 2}));
  const double told = *releases->epsilon({RunId(14), {4, 4}, 1}, 1e-5);
  REQUIRE(releases->count({RunId(13), release_task(2), 8, {0, 9}}, {.most = 2}));
  CHECK(*releases->epsilon({RunId(14), {4, 4}, 1}, 1e-5) >= told);
}

TEST_CASE("private releases: a file that says nothing of the noise in sums counts a client's own") {
  const test::TemporaryDirectory state;
  REQUIRE(write_file_atomic(state.path() / "private-releases", "11 1 50 50 0 5 10\n12 2 9 9 0 5 0\n"));
  const auto releases = PrivateReleases::read(state.path());
  REQUIRE(releases);
  CHECK(releases->place(RunId(12)) == 2);
  CHECK(*releases->epsilon_in_sums({RunId(13), {0, 10}, 50}, 1e-5) ==
        doctest::Approx(4.377178).epsilon(1e-6));
}

TEST_CASE("private releases: each run has a place of its own from the first update on, in any process") {
  const test::TemporaryDirectory state;
  auto releases = PrivateReleases::read(state.path());
  CHECK(releases->place(RunId(90)) == 1);
  CHECK(releases->place(RunId(20)) == 1);  // no update was sent yet
  REQUIRE(releases->count({RunId(90), release_task(1), 5}, {.most = 9}));
  CHECK(releases->place(RunId(20)) == 2);
  REQUIRE(releases->count({RunId(20), release_task(1), 5}, {.most = 9}));
  CHECK_FALSE(releases->count({RunId(10), release_task(1), 5}, {.most = 0}));
  releases = PrivateReleases::read(state.path());
  CHECK(releases->place(RunId(90)) == 1);
  CHECK(releases->place(RunId(20)) == 2);
  CHECK(releases->place(RunId(10)) == 3);
}

}  // namespace fedge::client
