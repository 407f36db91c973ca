// TaskWorker: the daemon's work on its tasks: prepares runs, fetches models from the coordinator or from the
// members of their swarm, trains on the worker thread, and publishes status records. The conductor's port
// Work. On the io_context's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "client/device/coordinator_link.h"
#include "client/device/round_exchange.h"
#include "client/device/tokenizer_fetches.h"
#include "client/device/update_maker.h"
#include "dht/node/directory_node.h"

namespace fedge::client {

class TaskWorker final : public Work {
 public:
  TaskWorker(DaemonContext& context, CoordinatorLink& link, RoundExchange& exchange);

  void prepare(const protocol::RunDescription& description) override;
  void fetch(const ClientEngine::FetchModel& fetch) override;
  void train(const ClientEngine::Train& train) override;
  void train_ahead(const ClientEngine::TrainAhead& ahead) override;
  void abandon_ahead(RunId run) override { end_ahead(run); }
  void mask(RunId run, TaskId task, privacy::Masking masking) override;
  void abandon(RunId run, TaskId task) override;
  void forget(RunId run) override;
  void publish(const ClientEngine::Publish& record) override;

  // A stream has kept another segment: runs that wait for one are prepared.
  void grown();
  // Takes a message of split training, or a part of a tokenizer; false: it is another.
  bool received(const protocol::Message& message) {
    return tokenizers_.received(message) || split_->received(message);
  }
  // Stops the current task.
  void stop();
  void leave_trainers();
  // Ends the trainer programs, each of which may take seconds. The worker must not run any more.
  void end_trainers();

 private:
  // The task that is being fetched or trained.
  struct InHand {
    RunId run;
    std::stop_source stop = {};
    TaskFiles::Download download = {};  // being fetched, or waiting for training
    bool exchanging = false;            // its model is being fetched through its swarm
  };
  // A trained update that is not masked yet.
  struct Unmasked {
    UpdateMaker::Order order;
    WorkResult result;
  };
  // Training for a task that is expected.
  struct Ahead {
    protocol::TrainRequest request;
    std::stop_source stop = {};
    std::optional<WorkResult> result = {};  // once it has ended
  };
  TrainerOptions trainer_of(const std::string& run);
  // Fetches the run's tokenizer first if it is long and not here. On the worker thread, like build().
  void find_tokenizer(const std::shared_ptr<const protocol::RunDescription>& described,
                      const ClientSide& side);
  void fetch_tokenizer(const std::shared_ptr<const protocol::RunDescription>& described,
                       const ClientSide& side, const std::string& hash);
  void build(const std::shared_ptr<const protocol::RunDescription>& described, const ClientSide& side);
  // The run with the segments that its stream has kept until now. On the trainer thread.
  std::shared_ptr<PreparedRun> renewed(RunId id, const std::shared_ptr<PreparedRun>& run);
  void await_data(DeviceRun& run, const ClientSide& side);
  // Returns the answer with which the engine reports a prepared run.
  ClientEngine::RunPrepared answer_for(RunId run, const PreparedRun& ready) const;
  // `quoted`: an error may quote the owner's data.
  void prepared(const std::shared_ptr<const protocol::RunDescription>& described,
                const Result<std::shared_ptr<PreparedRun>>& built, bool quoted);
  void fetched(const ClientEngine::FetchModel& fetch, Result<TaskFiles::Download> download);
  void all_fetched(const ClientEngine::FetchModel& fetch, Time begun, const swarm::Peer::Figures& before);
  // Fetches the model from the members of its swarm.
  void exchange_model(RunId run, std::function<void(const Result<void>&)> done);
  // Partial work: asks the training to end in time.
  void limit_training(const ClientEngine::Train& train, std::stop_source enough);
  void report_unshared(const std::string& run, const Error& error);
  // The task's training has ended. On the worker thread. `loaded`: its model, for training ahead; or null.
  void finish(const UpdateMaker::Order& order, const std::shared_ptr<PreparedRun>& run,
              const std::shared_ptr<Result<WorkResult>>& result,
              const std::shared_ptr<const LoadedModel>& loaded);
  void end_ahead(RunId run);
  static Digest digest_of(TaskKind kind, const WorkResult& result);
  void trained_unmasked(const UpdateMaker::Order& order, Result<WorkResult> result, const Digest& update);
  void trained(const UpdateMaker::Order& order, const Result<TaskFiles::Update>& update);
  void report_fault(const PreparedRun& run, const protocol::TrainRequest& request, const Error& fault);
  void publish_in_directory(RunId run, const NodeRecord& record, Time expires);

  DaemonContext& context_;
  CoordinatorLink& link_;
  RoundExchange& exchange_;
  TokenizerFetches tokenizers_;
  std::shared_ptr<SplitLink> split_;
  UpdateMaker maker_;  // used by the worker and the trainer
  protocol::Timer training_timer_;
  std::optional<InHand> in_hand_;
  std::map<RunId, std::shared_ptr<Unmasked>> unmasked_;
  std::map<RunId, std::shared_ptr<Ahead>> ahead_;
  dht::SequenceNumbers sequences_;  // of published records
};

}  // namespace fedge::client
