// RunBook: the runs that a client takes part in, and the task of each. It knows which task a device begins
// next: one at a time over all runs, in the order in which they were assigned. A pure container of
// ClientEngine. Cost: O(runs) a call; a run takes about 200 bytes, and 600
// more while it has a task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/engine/boxed.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/messages.h"

namespace fedge::client {

// The most runs that a client takes part in at the same time; it refuses further ones.
inline constexpr std::size_t kMaxRuns = 16;
// The most times that a client counts its data in a run: each difference of two sums over the same data may
// tell something about the clients that are in only one of them.
inline constexpr std::uint32_t kMostStatistics = 6;

struct ClientRun {
  // State of its task. kPreparing: waits for the run's data; kWaiting: waits for other runs' tasks; kFetched:
  // waits for the end of training for a later task.
  enum class Work : std::uint8_t { kIdle, kPreparing, kWaiting, kFetching, kFetched, kTraining, kOffered };
  // kUndescribed: only an update of an earlier process is known.
  enum class Stage : std::uint8_t { kUndescribed, kPreparing, kPrepared, kRejected };

  // The task that the client expects next, for which it trains while its update is under way.
  struct Ahead {
    enum class Work : std::uint8_t { kWaiting, kTraining, kTrained };
    protocol::TrainRequest request;  // as it is expected, without model and deadline
    Work work = Work::kWaiting;
  };

  RunId id;
  std::string name;
  Stage stage = Stage::kUndescribed;
  Work work = Work::kIdle;
  RoundNumber seen;        // the round of its last task
  SampleCount samples{1};  // as prepared
  SampleCount evaluates;
  double capability = 1;
  std::shared_ptr<const DevicePower> power;  // null: unknown
  Duration status_every{};
  bool masked = false;
  bool overlaps = false;              // it trains for the next task while its update is under way
  bool rejection_is_private = false;  // the coordinator gets only its code
  bool traced = false;                // events about its tasks name their traces
  std::optional<Time> publish_at;     // while online and prepared
  std::optional<Time> trained_at;     // last time
  Boxed<Error> rejection;             // why this client cannot take part in the run
  Boxed<protocol::TrainRequest> task;
  Time asked{};            // when `task` was assigned
  std::uint64_t turn = 0;  // order of arrival among all tasks
  Boxed<protocol::UpdateOffer> offer;
  Boxed<Ahead> ahead;

  bool has(TaskId wanted) const { return task && task->task() == wanted; }
  bool in_hand() const {  // it is being fetched or trained
    return work == Work::kFetching || work == Work::kFetched || work == Work::kTraining;
  }
  bool works_on(TaskId wanted) const { return has(wanted) && work != Work::kOffered; }
  // Checks the task against the run: a masked run needs a secure session, an unmasked run none.
  Result<void> check(const protocol::TrainRequest& request) const;
  // Adds the trace of the current task to the event, if the run is traced.
  Event with_trace(Event event) const;
  void end_task();
  // Expects what the current task says about the next one.
  void expect_next();
  // Whether this task is the expected one, or leaves the expectation as it is.
  bool may_expect(const protocol::TrainRequest& request) const;
  // Whether this task is the expected one, and the training for it has been completed.
  bool has_trained(const protocol::TrainRequest& request) const;
};

// Whether the request is the expected one, so that a training for the expected one answers it.
bool is_expected(const protocol::TrainRequest& expected, const protocol::TrainRequest& request);

class RunBook {
 public:
  // The state of one run, for reports.
  struct Part {
    RunId run;
    // "rejected", "preparing", "idle", "waiting" (for another run's task), "fetching", "fetched" (waits for
    // training ahead), "training" or "offered"
    const char* work;
    std::optional<TaskId> task;   // the current task
    std::optional<TaskId> ahead;  // the expected task for which it trains or has trained
    std::string reason;           // why the run is rejected; empty if it is not
  };

  // `traced`: of all runs.
  explicit RunBook(bool traced = false) : traced_(traced) {}
  // Null if the run is unknown.
  ClientRun* find(RunId run);
  const ClientRun* find(RunId run) const;
  // The run, if its task is this one and in this state; else null.
  ClientRun* at_work(RunId run, TaskId task, ClientRun::Work work);
  bool full() const { return runs_.size() == kMaxRuns; }
  // Adds an unknown run; not if the book is full.
  ClientRun& add(RunId run);
  // Gives the run this task; later tasks come after it. Sets no Work.
  void assign(ClientRun& run, const protocol::TrainRequest& request, Time now);
  // The run whose waiting task begins next; null if none waits, or while one is fetched or trained. While a
  // run trains ahead, only its own task begins.
  ClientRun* next_to_start();
  // The run whose model is fetched and whose training may begin; null if there is none.
  ClientRun* next_to_train();
  // The run that may train for its expected task; null if there is none, or while anything else is done.
  ClientRun* next_ahead();
  // Removes runs of which nothing is known but a task that has ended.
  void remove_ended();

  // In the order in which the client learned of the runs.
  std::vector<Part> parts() const;
  // Whether any run is not rejected.
  bool takes_part() const;
  // When a run's status is to be published next.
  std::optional<Time> next_publication() const;

  auto begin() { return runs_.begin(); }
  auto end() { return runs_.end(); }

 private:
  static bool trains_ahead(const ClientRun& run);

  bool traced_;
  std::uint64_t turns_ = 0;  // tasks assigned so far
  std::vector<ClientRun> runs_;
};

}  // namespace fedge::client
