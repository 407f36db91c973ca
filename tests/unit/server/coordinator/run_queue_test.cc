#include "server/coordinator/detail/run_queue.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/store/sqlite_store.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {

TEST_CASE("run queue: what is to be gone on with must be the same, and else what is another is named") {
  const test::TemporaryDirectory directory;
  boost::asio::io_context io;
  const auto queue = RunQueue::open(io, directory.path() / "runs.db");
  REQUIRE(queue);
  const auto document = [](const std::string& hash, const std::string& rounds) {
    return "[model]\nbase = \"base.safetensors\"\nbase_hash = \"" + hash + "\"\n[run]\nrounds = " + rounds +
           "\n";
  };
  std::vector<RunId> noted;  // runs that were to be inserted
  const auto note = [&](const RunRecord& fresh) -> Result<void> {
    noted.push_back(fresh.id);
    return {};
  };
  const auto begun = (*queue)->submit("a", document("aa", "3"), note);
  REQUIRE(begun);
  const auto again = (*queue)->submit("a", document("aa", "3"), note);
  REQUIRE(again);
  CHECK(again->number == begun->number);
  const auto refused = [&](const std::string& text, const std::string& what) {
    const auto other = (*queue)->submit("a", text, note);
    REQUIRE_FALSE(other);
    CHECK(other.error().code == ErrorCode::kRefused);
    CHECK(
        other.error().message ==
        "run 1 (a) has not ended, and its " + what +
            " differs from the given one; continue with its own run file, or end the run: fedge run stop 1");
  };
  refused(document("aa", "4"), "run file");
  refused(document("bb", "3"), "model.base");
  refused(document("bb", "4"), "run file");
  refused("", "run file");
  CHECK(noted == std::vector{begun->id});
}

TEST_CASE("run queue: a run whose submission cannot be recorded is not inserted") {
  const test::TemporaryDirectory directory;
  boost::asio::io_context io;
  const auto queue = RunQueue::open(io, directory.path() / "runs.db");
  REQUIRE(queue);
  const auto refused = (*queue)->submit("a", "document", [](const RunRecord& fresh) -> Result<void> {
    CHECK(fresh.name == "a");
    return Error{ErrorCode::kResource, "no space"};
  });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "no space");
  CHECK((*queue)->runs()->empty());
  const auto stored = (*queue)->submit("a", "document", [](const RunRecord&) { return Result<void>(); });
  REQUIRE(stored);
  const auto runs = (*queue)->runs();
  REQUIRE(runs->size() == 1);
  CHECK(runs->front().number == stored->number);
  CHECK(runs->front().id == stored->id);
  CHECK(runs->front().status == stored->status);
}

namespace {

constexpr const char* kWaits = "waiting for clients: 0 of 3";

// A queue with one running run that waits for clients, and a second process's view of the store.
struct WaitingRun {
  WaitingRun() {
    auto opened = RunQueue::open(io, file);
    REQUIRE(opened);
    queue = *opened;
    const auto submitted = queue->submit("a", "document", [](const RunRecord&) { return Result<void>(); });
    REQUIRE(submitted);
    number = submitted->number;
    auto own = open_sqlite_store(file);
    REQUIRE(own);
    other = std::move(*own);
    queue->watch([this](const Result<std::vector<RunRecord>>&) { ++told; });
    CHECK(claim().empty());
    queue->explain(number, kWaits);
    CHECK(settled() == kWaits);
  }
  ~WaitingRun() { queue->shut_down(); }

  // Claims the run and returns its reason then.
  std::string claim() {
    std::optional<std::string> reason;
    queue->claim(number, [&](const Result<RunRecord>& record) {
      REQUIRE(record);
      reason = record->reason;
    });
    run_until([&] { return reason.has_value(); });
    return *reason;
  }
  // Returns the run's reason once the queue has done all earlier work.
  std::string settled() {
    const int before = told;
    queue->look_now();
    run_until([&] { return told > before; });
    const auto record = other->run(number);
    REQUIRE(record);
    return record->reason;
  }
  void run_until(const std::function<bool()>& happened) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!happened() && std::chrono::steady_clock::now() < limit)
      io.run_one_for(std::chrono::milliseconds(100));
    REQUIRE(happened());
  }

  test::TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "runs.db";
  boost::asio::io_context io;
  std::shared_ptr<RunQueue> queue;
  std::unique_ptr<RunStore> other;
  RunNumber number;
  int told = 0;
};

}  // namespace

TEST_CASE("run queue: a run that was paused and resumed between two looks still says that it waits") {
  WaitingRun run;
  REQUIRE(run.other->ask(run.number, RunStatus::kPaused, "for lunch", 1));
  REQUIRE(run.other->ask(run.number, RunStatus::kPending, "", 2));
  CHECK(run.claim() == kWaits);
  run.queue->explain(run.number, "");
  CHECK(run.settled().empty());
  CHECK(run.claim().empty());
}

TEST_CASE("run queue: a reason that could not be written is written at a later look") {
  WaitingRun run;
  const std::filesystem::path aside = run.directory.path() / "aside.db";
  std::filesystem::rename(run.file, aside);
  run.queue->explain(run.number, "");
  run.settled();
  std::filesystem::rename(aside, run.file);
  CHECK(run.settled().empty());
}

TEST_CASE("run queue: when the coordinator stops, no run says that it waits for clients") {
  WaitingRun run;
  run.queue->shut_down();
  const auto record = run.other->run(run.number);
  REQUIRE(record);
  CHECK(record->status == RunStatus::kRunning);
  CHECK(record->reason.empty());
}

}  // namespace fedge::server
