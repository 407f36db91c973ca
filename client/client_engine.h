// ClientEngine: the client's decisions as a pure state machine (core/node.h): keep a connection, take part in
// several runs, fetch and train one task at a time over all of them, offer the updates, survive cut links.
// What was trained before a cut, or by a process that was killed, is offered again, not trained again.
// Sockets, training and storage are effects; the same engine runs in the daemon and in the simulator. Under 1
// KiB a client with one run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/discovery/backoff.h"
#include "client/presence.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "core/result.h"
#include "protocol/messages.h"

namespace fedge::client {

// That a client takes part in at once; it refuses further ones.
inline constexpr std::size_t kMaxRuns = 16;

class ClientEngine {
 public:
  // --- inputs ---
  // Connect now: at the beginning, and when the network or the device is back, whatever the back-off says.
  struct Start {};
  // Before Start, once for each run: an update that an earlier process has trained for this task, and that
  // has no verdict yet.
  struct Resumed {
    protocol::TrainRequest request;
    protocol::UpdateOffer offer;
  };
  struct Connected {
    protocol::Welcome welcome;
  };
  // The link is gone or could not be made. Never final, whatever the error: only a Goodbye that has been
  // received is the coordinator's word, also one that comes instead of a welcome.
  struct Disconnected {
    Error error;
  };
  struct Received {
    protocol::Message message;
  };
  struct RunPrepared {
    RunId run;
    SampleCount samples;      // of this client's training data, at least 1
    double capability = 1;    // share of a model that it can train, in (0, 1]
    Duration status_every{};  // how often it publishes a record of itself; 0: never
    bool masked = false;      // its updates leave masked or not at all: every task belongs to a session
  };
  struct RunRejected {
    RunId run;
    Error error;
  };
  struct ModelFetched {
    RunId run;
    TaskId task;
  };
  struct ModelFailed {
    RunId run;
    TaskId task;
    Error error;
  };
  struct Trained {
    RunId run;
    TaskId task;
    protocol::UpdateOffer offer;
  };
  // At whatever it was, but for an offer.
  struct TrainingFailed {
    RunId run;
    TaskId task;
    Error error;
  };
  struct Stop {};
  using Input = std::variant<Expired, Start, Resumed, Connected, Disconnected, Received, RunPrepared,
                             RunRejected, ModelFetched, ModelFailed, Trained, TrainingFailed, Stop>;

  // --- effects ---
  struct Connect {};
  struct Disconnect {
    std::string reason;
  };
  struct Send {
    protocol::Message message;
  };
  // Build data, model and trainer; answer with RunPrepared or RunRejected.
  struct PrepareRun {
    protocol::RunDescription description;
  };
  // Fetch the model; answer with ModelFetched or ModelFailed.
  struct FetchModel {
    RunId run;
    TaskId task;
    protocol::Manifest model;
    std::optional<protocol::Manifest> control;  // to be fetched as well
  };
  // Train from the fetched model; answer with Trained (the offer's payload is then kept for the peer, also
  // for a process after this one) or TrainingFailed.
  struct Train {
    RunId run;
    TaskId task;
    Coverage coverage;
    Time asked;          // when the task came
    Duration time_left;  // from then on, until the update is no longer waited for
  };
  // Stop fetching or training for this task and forget its update.
  struct Abandon {
    RunId run;
    TaskId task;
  };
  // The run is over: nothing that is kept of it will be asked for again.
  struct ForgetRun {
    RunId run;
  };
  // Publish what there is to say about this client now.
  struct Publish {
    RunId run;
    RoundNumber round;                  // of the task it saw last
    std::optional<Duration> freshness;  // since it last trained for the run; nothing: it never has
    double availability = 1;            // Presence::share()
  };
  // The coordinator has revoked this client's key: there is nothing more to do.
  struct Revoked {
    std::string reason;
  };
  struct Finished {};  // the engine has stopped for good; a finished update is kept (Resumed)
  using Effect = std::variant<Connect, Disconnect, Send, PrepareRun, FetchModel, Train, Abandon, ForgetRun,
                              Publish, Revoked, Finished, Event>;

  explicit ClientEngine(BackoffRules backoff = {}) : backoff_(backoff) {}

  // context.rng is this client's own stream; back-off jitter is drawn from it.
  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const;

  bool connected() const { return link_ == LinkState::kOnline; }
  bool stopped() const { return link_ == LinkState::kStopped; }
  const char* link_name() const;
  // What there is of a run, in the order in which this client has heard of them.
  struct Part {
    RunId run;
    // "rejected", "preparing", "idle", "waiting" (for another run's task), "fetching", "training" or
    // "offered"
    const char* work;
    std::optional<TaskId> task;  // in hand
  };
  std::vector<Part> parts() const;
  bool knows(RunId run) const { return find(run) != nullptr; }
  // In a run that it has not had to reject.
  bool takes_part() const;
  // Whether a trained update of the run is kept until there is a verdict.
  bool holds_update(RunId run) const {
    const Run* known = find(run);
    return known != nullptr && known->work == WorkState::kOffered;
  }
  // The run's task in hand; null without one.
  const protocol::TrainRequest* task(RunId run) const;

 private:
  enum class LinkState : std::uint8_t { kOffline, kConnecting, kOnline, kRevoked, kStopped };
  // Of a run's task. kPreparing: it waits for the run's data; kWaiting: for other runs' tasks.
  enum class WorkState : std::uint8_t { kIdle, kPreparing, kWaiting, kFetching, kTraining, kOffered };
  // Of a run. kUndescribed: all there is is an update of an earlier process.
  enum class Stage : std::uint8_t { kUndescribed, kPreparing, kPrepared, kRejected };
  struct Run {
    RunId id;
    std::string name;
    Stage stage = Stage::kUndescribed;
    WorkState work = WorkState::kIdle;
    RoundNumber seen;     // the round of its last task
    SampleCount samples;  // that are prepared
    double capability = 1;
    Duration status_every{};
    bool masked = false;
    std::optional<Time> publish_at;  // while online and prepared
    std::optional<Time> trained_at;  // last
    Error rejection;                 // why the run cannot be taken part in
    std::optional<protocol::TrainRequest> task;
    Time asked{};            // when it came
    std::uint64_t turn = 0;  // its place among all that came
    std::optional<protocol::UpdateOffer> offer;

    bool has(TaskId wanted) const { return task && task->task() == wanted; }
    bool works_on(TaskId wanted) const { return has(wanted) && work != WorkState::kOffered; }
  };

  void on(const Expired&, const StepContext&, std::vector<Effect>&);
  void on(const Start&, const StepContext&, std::vector<Effect>&);
  void on(const Resumed&, const StepContext&, std::vector<Effect>&);
  void on(const Connected&, const StepContext&, std::vector<Effect>&);
  void on(const Disconnected&, const StepContext&, std::vector<Effect>&);
  void on(const Received&, const StepContext&, std::vector<Effect>&);
  void on(const RunPrepared&, const StepContext&, std::vector<Effect>&);
  void on(const RunRejected&, const StepContext&, std::vector<Effect>&);
  void on(const ModelFetched&, const StepContext&, std::vector<Effect>&);
  void on(const ModelFailed&, const StepContext&, std::vector<Effect>&);
  void on(const Trained&, const StepContext&, std::vector<Effect>&);
  void on(const TrainingFailed&, const StepContext&, std::vector<Effect>&);
  void on(const Stop&, const StepContext&, std::vector<Effect>&);

  void on_message(const protocol::RunDescription&, Time now, std::vector<Effect>&);
  void on_message(const protocol::TrainRequest&, Time now, std::vector<Effect>&);
  void on_message(const protocol::UpdateVerdict&, std::vector<Effect>&);
  void on_message(const protocol::CancelTask&, std::vector<Effect>&);
  void on_message(const protocol::RunEnded&, std::vector<Effect>&);
  void on_message(const protocol::Goodbye&, std::vector<Effect>&);
  void unexpected(const protocol::Message&, std::vector<Effect>&);

  const Run* find(RunId run) const;
  Run* find(RunId run) { return const_cast<Run*>(std::as_const(*this).find(run)); }
  // The run, if it is at this work for this task.
  Run* at_work(RunId run, TaskId task, WorkState work);
  Run& add_run(RunId run);
  // Of the run's task in hand; a reason may be empty.
  static Event about_task(const Run& run, Severity severity, const char* name, const std::string& reason);
  void connect(std::vector<Effect>& effects);
  void answer_run(Run& run, Time now, std::vector<Effect>& effects);
  void refuse_run(const protocol::RunDescription& description, std::vector<Effect>& effects);
  void publish(Run& run, Time now, std::vector<Effect>& effects);
  // Whether what it asks for fits the run: a masked run's updates leave it in sessions alone.
  static Result<void> check_task(const Run& run, const protocol::TrainRequest& request);
  void go_on_from(Run& run, const protocol::TrainRequest& request, std::vector<Effect>& effects);
  void start_next(std::vector<Effect>& effects);
  // The task in hand gives way; says so of an update that nobody will fetch.
  void drop(Run& run, const std::string& reason, std::vector<Effect>& effects);
  void abandon(Run& run, std::vector<Effect>& effects);
  void fail_task(Run& run, const Error& error, std::vector<Effect>& effects);
  void leave(Run& run, const std::string& reason, std::vector<Effect>& effects);
  void revoked(const std::string& reason, std::vector<Effect>& effects);
  void end_work(const std::string& reason, LinkState link, std::vector<Effect>& effects);

  Backoff backoff_;
  LinkState link_ = LinkState::kOffline;
  std::optional<Time> retry_at_;
  Presence presence_;
  std::uint64_t turns_ = 0;  // tasks that have come
  std::vector<Run> runs_;    // at most kMaxRuns
};

}  // namespace fedge::client
