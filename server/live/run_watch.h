// RunWatch: the timeline of a run's current round and of the last one, and why the run waits. The run's
// thread writes, any thread reads. Memory: O(clients of the run).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "server/conductor/watch.h"
#include "server/live/round_record.h"

namespace fedge::server {

// The stages of a task, in order. Those from kAccepted on end it.
enum class TaskStage {
  kAway,       // the coordinator restarted, and the client has not returned
  kTraining,   // the client was asked; it fetches the model and trains
  kUploading,  // it offered its update, which the coordinator fetches
  kAccepted,
  kRefused,   // by the coordinator
  kFailed,    // the client reported a failure, or declined the task
  kLost,      // the connection ended
  kLate,      // the deadline passed
  kUnneeded,  // the round had enough without it, or the run ended: nobody's failure
};
const char* name_of(TaskStage stage);
const char* name_of(TaskKind kind);  // "training"
inline bool has_ended(TaskStage stage) { return stage >= TaskStage::kAccepted; }

struct WatchedTask {
  ClientId client;
  TaskId task;
  TaskStage stage = TaskStage::kTraining;
  Time asked{};
  std::int64_t asked_date = 0;  // in Unix seconds; 0: in an earlier process
  std::optional<Time> offered = {};
  std::optional<Time> ended = {};
  std::uint64_t bytes = 0;    // of the update, as it is sent
  std::uint32_t attempt = 0;  // of its secure sum; 0: none
  ErrorCode code{};           // only if refused or failed
  std::string reason = {};    // why it ended without being accepted
};

struct LiveRun {
  struct Declined {
    ClientId client;
    std::string reason;
    std::int64_t date;  // since when, in Unix seconds
  };
  struct Waiting {
    RoundNumber round;
    std::size_t clients;  // that are ready
    std::size_t needed;
    Time since;
    std::int64_t date;  // the same in Unix seconds
  };
  // A client that is not asked to train for some rounds, because its last trainings failed.
  struct Quarantined {
    ClientId client;
    RoundNumber round;           // of the last failure
    std::uint64_t rounds = 0;    // for which it lasts; in a buffered run: deadlines of a round
    std::uint64_t failures = 0;  // in succession
  };
  Time now{};                           // on the run's clock
  RoundNumber round;                    // that is in progress, or the last one
  std::vector<WatchedTask> tasks = {};  // of the phase in progress, by client
  RoundNumber last_round;               // 0: none has closed
  std::vector<WatchedTask> last = {};   // of the last round, by phase and client
  std::size_t ready = 0;                // connected clients that take part
  std::size_t preparing = 0;            // that have not answered yet
  std::vector<Declined> declined = {};  // connected clients that take no part
  std::vector<Quarantined> quarantined = {};
  // The secure sum in progress.
  struct Secure {
    SecureStage stage;
    std::int64_t date = 0;  // since when, in Unix seconds
  };
  std::optional<Secure> secure = {};
  std::optional<Waiting> waiting = {};
};

// Receives what traces are made of. May be empty.
struct WatchRecords {
  // The tasks of a phase that has closed, or those in progress when the run ended.
  std::function<void(TaskId phase, std::vector<WatchedTask>, Time now)> on_tasks = {};
  std::function<void(RoundRecord, Time now)> on_round = {};
};

// What stays the same in a run.
struct RunFacts {
  bool buffered = false;          // tasks outlive the buffers that close meanwhile
  std::uint64_t model_bytes = 0;  // of the model's values; 0: unknown
  // The round after which the run ends at the latest: run.rounds, or earlier by the privacy budget; 0:
  // unknown.
  std::uint64_t last_round = 0;
  std::optional<double> epsilon = {};  // the privacy budget, at `delta`
  double delta = 0;
};

class RunWatch final : public Watch {
 public:
  explicit RunWatch(const RunFacts& facts = {})
      : facts_(facts), buffered_(facts.buffered), recorder_(facts.buffered) {}

  // Called with each task that ends; with an accepted one when its round closes, because a secure sum may
  // begin anew before.
  using Ended = std::function<void(const WatchedTask&)>;

  // ---- on the run's thread ----
  void linked(ClientId client, Time now) override;
  void declined(ClientId client, const std::string& reason, Time now) override;
  void left(ClientId client, Time now) override;
  void secure(const SecureStage& stage, Time now) override;
  void decided(const RunEngine::Input& input, const std::vector<RunEngine::Effect>& effects,
               Time now) override;
  // Takes up what the engine waits for now; nothing if it waits for no client.
  void waits(const std::optional<RunEngine::Waiting>& waiting, Time now);
  // From now on this process leads the run, and `ended` and `records` are called: also about a round that
  // an earlier process began, but not about phases that closed there.
  void begin(Ended ended, WatchRecords records = {});
  // The phase that is being closed gives no new model.
  void not_aggregated(TaskId task);

  // Whether a task of the client may still be answered: also of one that has disconnected.
  bool awaits(ClientId client) const;

  // ---- on any thread ----
  const RunFacts& facts() const { return facts_; }
  LiveRun progress() const;
  // Parts of progress() that cost less.
  std::optional<LiveRun::Waiting> waiting() const;
  Time now() const;
  struct Counts {
    RoundNumber round;
    std::map<TaskStage, std::size_t> tasks;
    std::size_t ready = 0;
    std::size_t declined = 0;
    std::size_t quarantined = 0;
    std::string secure = {};         // the stage of the secure sum in progress; empty: there is none
    std::size_t secure_awaited = 0;  // members that it waits for
  };
  Counts counts() const;
  // What the connected client does in the run: "preparing", "ready" or "declined", and why it declined;
  // nothing if it is not connected.
  std::optional<std::pair<const char*, std::string>> standing(ClientId client) const;
  // Changes whenever progress() does, apart from its time.
  std::uint64_t version() const;

 private:
  struct Member {
    enum class State { kPreparing, kReady, kDeclined } state;
    std::string reason;
    std::int64_t date;
  };
  using Tasks = std::map<std::pair<ClientId, TaskId>, WatchedTask>;

  void heard(const RunEngine::Input& input, Time now);
  void carried_out(const RunEngine::Effect& effect, Time now);
  void finish(const std::string& reason, Time now);
  void sent(const RunEngine::Send& sent, Time now);
  void end(ClientId client, TaskId task, TaskStage stage, const Error& why, Time now);
  void end_all(ClientId client, const char* why, Time now);
  void close(const RunEngine::CloseRound& turn, Time now);
  void take_up(const Event& event);
  // Whether the client is connected and still in quarantine.
  bool lasts(const LiveRun::Quarantined& one) const;
  void record(TaskId phase, std::vector<WatchedTask> tasks);
  Time present() const;
  // The calendar's time; 0 while an earlier process' inputs are repeated.
  std::optional<LiveRun::Secure> secure_now() const;
  std::int64_t date() const;
  void forget_old(ClientId client);
  void set(ClientId client, Member member);
  void note(Time now);

  const RunFacts facts_;
  bool buffered_;
  mutable std::mutex mutex_;
  Ended ended_;
  WatchRecords records_;
  RoundRecorder recorder_;
  std::vector<WatchedTask> told_;  // to be passed to ended_ without the lock
  std::vector<std::pair<TaskId, std::vector<WatchedTask>>> recorded_;               // likewise, to records_
  Time now_{};                                                                      // of the last call
  std::chrono::steady_clock::time_point noted_ = std::chrono::steady_clock::now();  // when it came
  std::uint64_t version_ = 0;
  RoundNumber round_;
  Tasks tasks_;
  RoundNumber last_round_;
  std::vector<WatchedTask> last_;
  std::map<ClientId, Member> members_;
  std::map<ClientId, LiveRun::Quarantined> quarantined_;  // until the client's next task
  std::optional<LiveRun::Secure> secure_;
  std::optional<LiveRun::Waiting> waiting_;
};

// The session does not see updates: these are awaited from the clients whose tasks have not ended.
inline std::optional<LiveRun::Secure> RunWatch::secure_now() const {
  auto now = secure_;
  if (now && now->stage.stage == "updates")
    for (const auto& [key, task] : tasks_)
      if (task.task == now->stage.task && !has_ended(task.stage)) now->stage.awaited.push_back(task.client);
  return now;
}

}  // namespace fedge::server
