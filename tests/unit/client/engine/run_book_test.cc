#include "client/engine/run_book.h"

#include <doctest/doctest.h>

namespace fedge::client {
namespace {

protocol::TrainRequest request_of(std::uint64_t run, std::uint32_t round) {
  protocol::TrainRequest request;
  request.run = RunId(run);
  request.round = RoundNumber(round);
  return request;
}

// Assigns a task that waits for its turn.
ClientRun& waits(RunBook& book, std::uint64_t run) {
  ClientRun& known = *book.find(RunId(run));
  book.assign(known, request_of(run, 1), Time{});
  known.work = ClientRun::Work::kWaiting;
  return known;
}

}  // namespace

TEST_CASE("run book: tasks begin in the order in which they were assigned, one at a time") {
  RunBook book;
  for (const std::uint64_t run : {1U, 2U, 3U}) book.add(RunId(run));
  for (const std::uint64_t run : {2U, 3U, 1U}) waits(book, run);
  for (const std::uint64_t run : {2U, 3U, 1U}) {
    ClientRun* next = book.next_to_start();
    REQUIRE(next != nullptr);
    CHECK(next->id == RunId(run));
    for (const auto work : {ClientRun::Work::kFetching, ClientRun::Work::kTraining}) {
      next->work = work;
      CHECK(book.next_to_start() == nullptr);
    }
    next->work = ClientRun::Work::kOffered;  // an update that waits for its verdict blocks nobody
  }
  CHECK(book.next_to_start() == nullptr);
}

TEST_CASE("run book: a run whose task was replaced waits behind the others") {
  RunBook book;
  for (const std::uint64_t run : {1U, 2U}) book.add(RunId(run));
  for (const std::uint64_t run : {1U, 2U, 1U}) waits(book, run);
  CHECK(book.next_to_start()->id == RunId(2));
}

TEST_CASE("run book: a run of which only an ended task was known is forgotten, a described one is not") {
  RunBook book;
  book.add(RunId(1)).task = request_of(1, 4);
  book.add(RunId(2)).stage = ClientRun::Stage::kPrepared;
  book.remove_ended();
  CHECK(book.find(RunId(1)) != nullptr);
  book.find(RunId(1))->end_task();
  book.remove_ended();
  CHECK(book.find(RunId(1)) == nullptr);
  CHECK(book.find(RunId(2)) != nullptr);
}

TEST_CASE("run book: a run is at work only on its own task and in its own state") {
  RunBook book;
  book.add(RunId(1));
  ClientRun& run = waits(book, 1);
  const TaskId task = run.task->task();
  CHECK(book.at_work(RunId(1), task, ClientRun::Work::kWaiting) == &run);
  CHECK(book.at_work(RunId(1), task, ClientRun::Work::kTraining) == nullptr);
  CHECK(book.at_work(RunId(1), {RoundNumber(2), task.track}, ClientRun::Work::kWaiting) == nullptr);
  CHECK(book.at_work(RunId(2), task, ClientRun::Work::kWaiting) == nullptr);
}

TEST_CASE("run book: the next publication is the earliest, and a book is full at 16 runs") {
  RunBook book;
  CHECK_FALSE(book.next_publication());
  for (std::uint64_t run = 0; run < kMaxRuns; ++run) {
    CHECK_FALSE(book.full());
    book.add(RunId(run)).publish_at = Time(seconds(run == 5 ? 3 : 10));
  }
  CHECK(book.full());
  CHECK(book.next_publication() == Time(seconds(3)));
}

TEST_CASE("run book: masked runs accept only tasks with a secure session, and others only without") {
  ClientRun run;
  for (const bool masked : {false, true})
    for (const std::uint32_t attempt : {0U, 1U}) {
      run.masked = masked;
      auto request = request_of(1, 1);
      request.secure_attempt = attempt;
      CHECK(bool(run.check(request)) == (masked == (attempt > 0)));
    }
}

}  // namespace fedge::client
