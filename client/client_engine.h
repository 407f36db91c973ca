// ClientEngine: the client's decisions as a pure state machine (core/node.h): keep a connection,
// take one task at a time, fetch the model, train, offer the update, survive cut links. What was
// trained before a cut, or by a process that was killed, is offered again, not trained again. Sockets,
// training and storage are effects; the same engine runs in the daemon and in the simulator. Under 1 KiB a
// client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "protocol/messages.h"

namespace fedge::client {

struct BackoffRules {
  Duration first = seconds(1);
  Duration longest = seconds(60);
};

class ClientEngine {
 public:
  // --- inputs ---
  // Connect now: at the beginning, and when the network or the device is back, whatever the back-off says.
  struct Start {};
  // Before Start: an update that an earlier process has trained for this task, and that has no verdict yet.
  struct Resumed {
    protocol::TrainRequest request;
    protocol::UpdateOffer offer;
  };
  struct Connected {
    protocol::Welcome welcome;
  };
  // The link is gone or could not be made. kRefused and kUnsupported are final: asking again will not help.
  struct Disconnected {
    Error error;
    Duration retry_after{};  // as the coordinator asks (protocol::Goodbye); 0: it has not
  };
  struct Received {
    protocol::Message message;
  };
  struct RunPrepared {
    RunId run;
    SampleCount samples;      // of this client's training data, at least 1
    double capability = 1;    // share of a model that it can train, in (0, 1]
    Duration status_every{};  // how often it publishes a record of itself; 0: never
  };
  struct RunRejected {
    RunId run;
    Error error;
  };
  struct ModelFetched {
    TaskId task;
  };
  struct ModelFailed {
    TaskId task;
    Error error;
  };
  struct Trained {
    TaskId task;
    protocol::UpdateOffer offer;
  };
  struct TrainingFailed {
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
    TaskId task;
    protocol::Manifest model;
    std::optional<protocol::Manifest> control;  // to be fetched as well
  };
  // Train from the fetched model; answer with Trained (the offer's payload is then kept for the peer, also
  // for a process after this one) or TrainingFailed.
  struct Train {
    TaskId task;
    Coverage coverage;
    Time asked;          // when the task came
    Duration time_left;  // from then on, until the update is no longer waited for
  };
  // Stop fetching or training for this task and forget its update.
  struct Abandon {
    TaskId task;
  };
  // Publish what there is to say about this client now.
  struct Publish {
    RunId run;
    RoundNumber round;  // of the task it saw last
  };
  // The engine has stopped for good; a reason means that it failed. A finished update is kept (Resumed).
  struct Finished {
    std::optional<Error> error;
  };
  using Effect = std::variant<Connect, Disconnect, Send, PrepareRun, FetchModel, Train, Abandon, Publish,
                              Finished, Event>;

  explicit ClientEngine(BackoffRules backoff = {}) : backoff_(backoff) {}

  // context.rng is this client's own stream; back-off jitter is drawn from it.
  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const;

  bool connected() const { return link_ == LinkState::kOnline; }
  // Whether a trained update is kept until there is a verdict.
  bool holds_update() const { return work_ == WorkState::kOffered; }
  bool stopped() const { return link_ == LinkState::kStopped; }
  const char* link_name() const;  // "offline", "connecting", "online" or "stopped"
  const char* work_name() const;  // "idle", "preparing", "fetching", "training" or "offered"
  // The task in hand, if any.
  const std::optional<protocol::TrainRequest>& task() const { return task_; }

 private:
  enum class LinkState : std::uint8_t { kOffline, kConnecting, kOnline, kStopped };
  enum class WorkState : std::uint8_t { kIdle, kPreparing, kFetching, kTraining, kOffered };

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

  void connect(std::vector<Effect>& effects);
  // In seconds, until the next try.
  double retry_delay(Duration window, const StepContext& context);
  void answer_run(Time now, std::vector<Effect>& effects);
  void publish(Time now, std::vector<Effect>& effects);
  void begin_task(std::vector<Effect>& effects);
  // The task in hand gives way; says so of an update that nobody will fetch.
  void drop(const std::string& reason, std::vector<Effect>& effects);
  void abandon(std::vector<Effect>& effects);
  void fail_task(const Error& error, std::vector<Effect>& effects);
  bool in_hand(RunId run, TaskId task) const { return task_ && task_->run == run && task_->task() == task; }
  void stop(std::optional<Error> error, std::vector<Effect>& effects);

  BackoffRules backoff_;
  LinkState link_ = LinkState::kOffline;
  WorkState work_ = WorkState::kIdle;
  std::uint32_t attempts_ = 0;  // failed connections in a row
  std::optional<Time> retry_at_;
  Duration retry_after_{};    // from the Goodbye that ends this link
  Duration spread_{};         // from the last Welcome
  std::optional<RunId> run_;  // whose data and model are prepared
  SampleCount samples_;       // and how many there are
  double capability_ = 1;
  Duration status_every_{};
  std::optional<Time> publish_at_;  // while online with a run that is prepared
  RoundNumber seen_;                // the round of its last task
  std::optional<RunId> preparing_;
  struct Rejection {
    RunId run;
    Error error;
  };
  std::optional<Rejection> rejected_;           // why the run last described cannot be taken part in
  std::optional<protocol::TrainRequest> task_;  // the task in hand
  Time asked_{};                                // when it came
  std::optional<protocol::UpdateOffer> offer_;  // its result
};

}  // namespace fedge::client
