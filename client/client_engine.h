// ClientEngine: the client's decisions as a pure state machine (core/node.h). It keeps a connection, takes
// part in several runs, fetches and trains one task at a time over all of them, and offers the updates.
// After a disconnect or a killed process it offers a finished update again instead of training again.
// Sockets, training and storage are effects, in daemon and simulator. A run without a task: at most 400
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/discovery/backoff.h"
#include "client/engine/run_book.h"
#include "client/presence.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "core/result.h"
#include "protocol/messages.h"

namespace fedge::client {

class ClientEngine {
 public:
  // --- inputs ---
  // Connect now, whatever the back-off says: at the beginning, and when the network or the device is back.
  struct Start {};
  // An update that an earlier process trained and that has no verdict yet. Comes before Start, at most once
  // for each run.
  struct Resumed {
    protocol::TrainRequest request;
    protocol::UpdateOffer offer;
  };
  struct Connected {
    protocol::Welcome welcome;
  };
  // The link was lost or could not be opened. Never final, whatever the error: only a received Goodbye can
  // be final, also one in place of a Welcome.
  struct Disconnected {
    Error error;
  };
  struct Received {
    protocol::Message message;
  };
  // Comes again when the run's data has grown: the coordinator gets another answer, with at least as many
  // samples as before, because a task may still be trained on the data before.
  struct RunPrepared {
    RunId run;
    SampleCount samples{1};   // of this client's training data; 0: it only evaluates
    double capability = 1;    // fraction of a model that it can train, in (0, 1]
    Duration status_every{};  // how often it publishes its status record; 0: never
    bool masked = false;      // every task needs a secure session; no unmasked update may leave
    SampleCount evaluates{};  // samples on which it evaluates models; 0: it evaluates none
    bool overlaps = false;    // it trains for the next task while its update is under way
    std::shared_ptr<const DevicePower> power = {};  // the energy of its work; null: unknown
  };
  struct RunRejected {
    RunId run;
    Error error;
    // The message is for the device's owner alone, because it may quote data; the coordinator gets the code.
    bool about_data = false;
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
  // The task failed at any stage before its update was offered.
  struct TrainingFailed {
    RunId run;
    TaskId task;
    Error error;
  };
  // The training ahead for this task has ended; false: without a result.
  struct AheadEnded {
    RunId run;
    TaskId task;
    bool trained = false;
  };
  struct Stop {};
  using Input =
      std::variant<Expired, Start, Resumed, Connected, Disconnected, Received, RunPrepared, RunRejected,
                   ModelFetched, ModelFailed, Trained, TrainingFailed, AheadEnded, Stop>;

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
    std::optional<protocol::Manifest> control;  // SCAFFOLD: also fetch this
  };
  // Train from the fetched model; answer with Trained or TrainingFailed. The offer's payload is then kept
  // for the coordinator, also across a restart of this process.
  struct Train {
    RunId run;
    TaskId task;
    Coverage coverage;
    Time asked;            // when the task was assigned
    Duration time_left;    // from `asked` until the coordinator stops waiting for the update
    bool trained = false;  // TrainAhead has trained for it: its result is the task's
  };
  // Train for this task, which has not been assigned yet, from the model of the run's current task; answer
  // with AheadEnded, and keep the result for Train or AbandonAhead.
  struct TrainAhead {
    RunId run;
    protocol::TrainRequest request;
  };
  // Stop training ahead, and forget its result.
  struct AbandonAhead {
    RunId run;
  };
  // Stop fetching or training for this task and forget its update.
  struct Abandon {
    RunId run;
    TaskId task;
  };
  // The run has ended: delete its files.
  struct ForgetRun {
    RunId run;
  };
  // The coordinator has said that a run has ended.
  struct RunOver {
    std::optional<Error> rejection;  // why this client took no part in it
  };
  // Publish this client's status record.
  struct Publish {
    RunId run;
    RoundNumber round;                  // of this client's last task
    std::optional<Duration> freshness;  // time since it last trained for the run; nothing: never
    double availability = 1;            // Presence::share()
  };
  // The coordinator has revoked this client's key; the engine stays disconnected.
  struct Revoked {
    std::string reason;
  };
  struct Finished {};  // the engine has stopped; finished updates are kept (Resumed)
  using Effect = std::variant<Connect, Disconnect, Send, PrepareRun, FetchModel, Train, TrainAhead,
                              AbandonAhead, Abandon, ForgetRun, RunOver, Publish, Revoked, Finished, Event>;

  explicit ClientEngine(BackoffRules backoff = {}, bool traced = false) : backoff_(backoff), runs_(traced) {}

  // context.rng is this client's own stream; back-off jitter is drawn from it.
  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const;

  bool connected() const { return link_ == LinkState::kOnline; }
  bool stopped() const { return link_ == LinkState::kStopped; }
  const char* link_name() const;
  using Part = RunBook::Part;
  std::vector<Part> parts() const { return runs_.parts(); }
  bool knows(RunId run) const { return runs_.find(run) != nullptr; }
  // Whether this client takes part in any run: one that is known and not rejected.
  bool takes_part() const { return runs_.takes_part(); }
  // Whether a trained update of the run is waiting for its verdict.
  bool holds_update(RunId run) const {
    const Run* known = runs_.find(run);
    return known != nullptr && known->work == WorkState::kOffered;
  }
  // The finished update of the run's current task; null without one.
  const protocol::UpdateOffer* offer(RunId run) const {
    const Run* known = runs_.find(run);
    return known != nullptr && known->offer ? &*known->offer : nullptr;
  }
  // The run's current task; null without one.
  const protocol::TrainRequest* task(RunId run) const {
    const Run* known = runs_.find(run);
    return known != nullptr && known->task ? &*known->task : nullptr;
  }

 private:
  enum class LinkState : std::uint8_t { kOffline, kConnecting, kOnline, kRevoked, kStopped };
  using Run = ClientRun;
  using WorkState = ClientRun::Work;
  using Stage = ClientRun::Stage;

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
  void on(const AheadEnded&, const StepContext&, std::vector<Effect>&);
  void on(const Stop&, const StepContext&, std::vector<Effect>&);

  void on_message(const protocol::RunDescription&, Time now, std::vector<Effect>&);
  void on_message(const protocol::TrainRequest&, Time now, std::vector<Effect>&);
  void on_message(const protocol::UpdateVerdict&, std::vector<Effect>&);
  void on_message(const protocol::CancelTask&, std::vector<Effect>&);
  void on_message(const protocol::RunEnded&, std::vector<Effect>&);
  void on_message(const protocol::Goodbye&, std::vector<Effect>&);
  void unexpected(const protocol::Message&, std::vector<Effect>&);

  void connect(std::vector<Effect>& effects);
  // `again`: on the same connection, because the data has grown.
  void answer_run(Run& run, Time now, std::vector<Effect>& effects, bool again = false);
  void refuse_run(const protocol::RunDescription& description, std::vector<Effect>& effects);
  void publish(Run& run, Time now, std::vector<Effect>& effects);
  void go_on_from(Run& run, const protocol::TrainRequest& request, std::vector<Effect>& effects);
  void start_next(std::vector<Effect>& effects);
  void begin_training(Run& run, std::vector<Effect>& effects);
  void drop_ahead(Run& run, std::vector<Effect>& effects);
  // Ends the current task; reports a finished update that nobody will fetch as dropped.
  void drop(Run& run, const std::string& reason, std::vector<Effect>& effects);
  void abandon(Run& run, std::vector<Effect>& effects);
  // `forbidden`: the owner's limits or the run's terms forbid the task, which is no fault.
  void fail_task(Run& run, const Error& error, std::vector<Effect>& effects, bool forbidden = false);
  // Also tells the coordinator that the run's task has failed, and ends it.
  void report_failed(Run& run, const Error& told, std::vector<Effect>& effects);
  void leave(Run& run, const std::string& reason, std::vector<Effect>& effects);
  void revoked(const std::string& reason, std::vector<Effect>& effects);
  void end_work(const std::string& reason, LinkState link, std::vector<Effect>& effects);

  Backoff backoff_;
  LinkState link_ = LinkState::kOffline;
  std::optional<Time> retry_at_;
  Presence presence_;
  RunBook runs_;
};

}  // namespace fedge::client
