// The client's files about secure aggregation: the known keys of other clients, and the sums it has helped to
// reveal.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/secure/daily_updates.h"
#include "client/secure/known_clients.h"
#include "client/secure/summed_updates.h"
#include "core/platform/files.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

PublicKey key(std::uint8_t first) { return {{first}}; }
TaskId task(std::uint32_t round, std::uint32_t track = 0) { return {RoundNumber(round), TrackId(track)}; }

}  // namespace

TEST_CASE(
    "known clients: a key that is seen first is that client's from then on, also for the next process") {
  const test::TemporaryDirectory scratch;
  auto known = KnownClients::read(scratch.path());
  REQUIRE(known);
  CHECK(known->check_pinned_key(ClientId(4), key(1)));
  CHECK(known->check_pinned_key(ClientId(9), key(2)));
  CHECK(known->size() == 2);
  CHECK(known->check_pinned_key(ClientId(4), key(1)));
  CHECK(known->size() == 2);
  REQUIRE(known->write(scratch.path()));
  auto again = KnownClients::read(scratch.path());
  REQUIRE(again);
  CHECK(again->check_pinned_key(ClientId(9), key(2)));
  const auto refused = again->check_pinned_key(ClientId(4), key(3));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(refused.error().message.find("client 4 had another key") == 0);
}

TEST_CASE("known clients: a damaged file is named, with the line") {
  const test::TemporaryDirectory scratch;
  REQUIRE(
      write_file_atomic(scratch.path() / "known-clients", "4 " + to_hex(key(1)) + "\n5 nonsense\n", 0600));
  const auto known = KnownClients::read(scratch.path());
  REQUIRE_FALSE(known);
  CHECK(known.error().code == ErrorCode::kCorrupt);
  CHECK(known.error().message.find("known-clients:2: this line is damaged") != std::string::npos);
}

TEST_CASE("summed updates: a task is summed once, for each run and track, also in another process") {
  const test::TemporaryDirectory state;
  auto summed = SummedUpdates::read(state.path());
  REQUIRE(summed);
  const auto reveal = [&](RunId run, TaskId task, std::uint8_t what) {
    const auto record = summed->add({run, task, {1, what}, {2, what}});
    REQUIRE(record);
    REQUIRE(record->write());
  };
  reveal(RunId(7), task(3), 1);
  reveal(RunId(7), task(1, 7), 2);
  reveal(RunId(8), task(2), 3);
  const auto again = SummedUpdates::read(state.path());
  REQUIRE(again);
  for (const SummedUpdates* each : {&std::as_const(*summed), &*again}) {
    CHECK_FALSE(each->admit_task(RunId(7), task(2)));
    CHECK_FALSE(each->admit_task(RunId(7), task(3)));
    CHECK(each->admit_task(RunId(7), task(4)));
    CHECK_FALSE(each->admit_task(RunId(7), task(1, 7)));
    CHECK(each->admit_task(RunId(7), task(2, 7)));
    CHECK(each->admit_task(RunId(8), task(3)));
    CHECK_FALSE(each->admit_update({2, 3}));
    CHECK(each->admit_update({2, 4}));
    // The same model and terms are permitted only in a later round of the same run, after a failed sum.
    CHECK(each->admit_origin({RunId(7), task(4), {1, 1}, {}}));
    CHECK_FALSE(each->admit_origin({RunId(7), task(4, 1), {1, 1}, {}}));
    CHECK_FALSE(each->admit_origin({RunId(8), task(4), {1, 1}, {}}));
  }
  const auto refused = again->admit_origin({RunId(8), task(4), {1, 1}, {}});
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(refused.error().message.find("was already summed in round 3 of run 7") != std::string::npos);
}

TEST_CASE("summed updates: what they are known by is the model, the terms, the seed and the coordinator") {
  const Digest one{1};
  const Digest other{2};
  const PublicKey first = key(1);
  const PublicKey second = key(2);
  const std::set<Digest> all = {
      SummedUpdates::origin_of({first, one, one, 5}), SummedUpdates::origin_of({second, one, one, 5}),
      SummedUpdates::origin_of({first, other, one, 5}), SummedUpdates::origin_of({first, one, other, 5}),
      SummedUpdates::origin_of({first, one, one, 6})};
  CHECK(all.size() == 5);
  CHECK(all.contains(SummedUpdates::origin_of({first, one, one, 5})));
  const std::vector<float> values = {1, -2, 3};
  std::vector<float> near = values;
  near[1] = std::nextafter(near[1], 0.0F);
  CHECK(SummedUpdates::update_of(values) == SummedUpdates::update_of(std::vector<float>{1, -2, 3}));
  CHECK(SummedUpdates::update_of(values) != SummedUpdates::update_of(near));
}

TEST_CASE("summed updates: one of zeros may be in several sums, in another process too") {
  const test::TemporaryDirectory state;
  const Digest zeros = SummedUpdates::update_of(std::vector<float>{0, -0.0F, 0});
  auto summed = SummedUpdates::read(state.path());
  REQUIRE(summed);
  const auto record = summed->add({RunId(7), task(1), {1}, zeros});
  REQUIRE(record);
  REQUIRE(record->write());
  CHECK(summed->admit_update(zeros));
  const auto again = SummedUpdates::read(state.path());
  REQUIRE(again);
  CHECK(again->admit_update(zeros));
  CHECK_FALSE(again->admit_task(RunId(7), task(1)));
}

TEST_CASE("summed updates: a disk that fails for a while costs the sums of that while alone") {
  const test::TemporaryDirectory state;
  const auto file = state.path() / "summed-updates";
  auto summed = SummedUpdates::read(state.path());
  REQUIRE(summed);
  const auto reveals = [&](std::uint32_t round) {
    return static_cast<bool>(
        summed->add({RunId(7), task(round), {1}, {static_cast<std::uint8_t>(round)}})->write());
  };
  CHECK(reveals(1));
  std::filesystem::rename(file, state.path() / "away");
  std::filesystem::create_directory(file);
  CHECK_FALSE(reveals(2));
  CHECK_FALSE(summed->admit_update({2}));
  std::filesystem::remove(file);
  std::filesystem::rename(state.path() / "away", file);
  CHECK(reveals(3));
  const auto again = SummedUpdates::read(state.path());
  REQUIRE(again);
  CHECK_FALSE(again->admit_update({1}));
  CHECK(again->admit_update({2}));
  CHECK_FALSE(again->admit_update({3}));
}

TEST_CASE("summed updates: an unfinished last record is written over, a damaged one is named") {
  const test::TemporaryDirectory state;
  const auto file = state.path() / "summed-updates";
  auto summed = SummedUpdates::read(state.path());
  REQUIRE(summed);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    const auto record = summed->add({RunId(7), task(round), {1}, {static_cast<std::uint8_t>(round)}});
    REQUIRE(record);
    REQUIRE(record->write());
  }
  const auto whole = read_file(file, 1000);
  REQUIRE(whole);
  REQUIRE(whole->size() == 192);
  // A power failure truncates the third record.
  REQUIRE(write_file_atomic(file, whole->substr(0, 150), 0600));
  auto cut = SummedUpdates::read(state.path());
  REQUIRE(cut);
  CHECK_FALSE(cut->admit_task(RunId(7), task(2)));
  CHECK(cut->admit_task(RunId(7), task(3)));
  REQUIRE(cut->add({RunId(7), task(3), {1}, {3}})->write());
  CHECK(read_file(file, 1000).value() == *whole);
  std::string damaged = *whole;
  damaged[70] = static_cast<char>(damaged[70] ^ 1);
  REQUIRE(write_file_atomic(file, damaged, 0600));
  const auto bad = SummedUpdates::read(state.path());
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == ErrorCode::kCorrupt);
  CHECK(bad.error().message.find("summed-updates is damaged") != std::string::npos);
  // The file is truncated while in use: an append that would leave a hole is an error.
  REQUIRE(write_file_atomic(file, whole->substr(0, 64), 0600));
  CHECK(summed->add({RunId(7), task(4), {1}, {4}})->write().error().code == ErrorCode::kCorrupt);
}

TEST_CASE(
    "daily updates: so many a day are made and not one more, whatever process or run, and a clock that is "
    "set "
    "back brings none back") {
  const test::TemporaryDirectory state;
  const auto work = [](RunId run, std::uint32_t round) {
    protocol::TrainRequest request;
    request.run = run;
    request.round = RoundNumber(round);
    return DailyUpdates::work_of(Digest(), request);
  };
  const auto count = [&](std::uint64_t day, RunId run, std::uint32_t round) {
    auto daily = DailyUpdates::read(state.path(), day);
    REQUIRE(daily);
    const bool admitted = daily->admit(work(run, round), 2).has_value();
    CHECK(daily->count(work(run, round), 2).has_value() == admitted);
    return admitted;
  };
  CHECK(count(100, RunId(7), 1));
  CHECK(count(100, RunId(7), 1));  // the same update again
  CHECK(count(100, RunId(8), 1));
  CHECK(count(100, RunId(8), 1));
  CHECK_FALSE(count(100, RunId(7), 2));
  CHECK_FALSE(count(99, RunId(7), 2));
  CHECK(count(101, RunId(7), 2));
  CHECK(count(100, RunId(7), 3));
  CHECK_FALSE(count(101, RunId(7), 4));
  const auto daily = DailyUpdates::read(state.path(), 101);
  CHECK(daily->admit(work(RunId(7), 4), 2).error().message.find("--max-updates-per-day") !=
        std::string::npos);
  for (const char* damaged : {"101 x\n", "101 2 7 4\n", "101 2 7 4 0 1\n", "101\n"}) {
    REQUIRE(write_file_atomic(state.path() / "updates-today", damaged, 0600));
    CHECK(DailyUpdates::read(state.path(), 101).error().code == ErrorCode::kCorrupt);
  }
  // A file in the format of an earlier version.
  REQUIRE(write_file_atomic(state.path() / "updates-today", "101 2 7 4 0\n", 0600));
  CHECK_FALSE(count(101, RunId(7), 4));
}

TEST_CASE("summed updates: an evaluation of a model is summed once, whatever the data") {
  SummedUpdates summed = SummedUpdates::in_memory();
  const auto evaluation = [](std::uint32_t round, std::uint8_t update) {
    return SummedUpdates::Sum{RunId(7),
                              SummedUpdates::recorded({RoundNumber(round), TrackId(), TaskKind::kEvaluation}),
                              {9},
                              {update}};
  };
  REQUIRE(summed.add(evaluation(1, 1)));
  // The coordinator asks again for the same model, once the device's data has grown: the sums are others.
  CHECK(summed.admit_update({2}));
  CHECK_FALSE(summed.admit_origin(evaluation(2, 2)));
  // Training from the same model in a later round is another matter: the sum of the first may have failed.
  const SummedUpdates::Sum training{RunId(7), {RoundNumber(1), TrackId()}, {5}, {3}};
  REQUIRE(summed.add(training));
  CHECK(summed.admit_origin({RunId(7), {RoundNumber(2), TrackId()}, {5}, {4}}));
}

TEST_CASE("daily updates: whatever is different in what an update is made of makes it another one") {
  protocol::TrainRequest request;
  request.run = RunId(7);
  request.round = RoundNumber(1);
  request.model.chunk_size = 4096;
  request.coverage = Coverage::of({{0, 100}});
  std::vector<Digest> all = {DailyUpdates::work_of(Digest(), request),
                             DailyUpdates::work_of(Digest{1}, request)};
  const auto with = [&](const std::function<void(protocol::TrainRequest&)>& change) {
    protocol::TrainRequest other = request;
    change(other);
    all.push_back(DailyUpdates::work_of(Digest(), other));
  };
  with([](auto& other) { other.run = RunId(8); });
  with([](auto& other) { other.round = RoundNumber(2); });
  with([](auto& other) { other.track = TrackId(1); });
  with([](auto& other) { other.model.payload_size = 400; });
  with([](auto& other) { other.control = other.model; });
  with([](auto& other) { other.coverage = Coverage::of({{0, 99}}); });
  with([](auto& other) { other.data_share = 0.5; });
  CHECK(std::set<Digest>(all.begin(), all.end()).size() == all.size());
  // Another attempt at a sum, and a repetition after a restart, are the same work.
  protocol::TrainRequest again = request;
  again.secure_attempt = 2;
  again.again = true;
  again.time_left = seconds(9);
  CHECK(DailyUpdates::work_of(Digest(), again) == all.front());
}

}  // namespace fedge::client
