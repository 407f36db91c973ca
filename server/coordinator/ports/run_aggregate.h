// RunAggregate: the models of a run's tracks in the coordinator. One worker thread folds updates, moves the
// models and evaluates, in the order of the calls; then the models, the metrics and a checkpoint become
// durable. A full disk is retried. Use it on the io_context's thread. It lives in the run's owner, which
// `alive` keeps until the worker's jobs have ended. Private to coordinator/.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/session/loop.h"
#include "server/backup/backup_lock.h"
#include "server/conductor/conductor.h"
#include "server/coordinator/detail/journal_writer.h"
#include "server/coordinator/ports/run_exchange.h"
#include "server/coordinator/run_parts.h"
#include "server/coordinator/uploads.h"
#include "server/report/metrics.h"

namespace fedge::server {

class RunAggregate final : public Aggregate {
 public:
  struct Surroundings {
    boost::asio::io_context& io;
    protocol::Worker& worker;
    std::filesystem::path data_directory;
    RunParts& parts;
    Uploads& uploads;
    RunExchange* exchange;  // null unless the run is serverless
    JournalWriter& journal;
    std::function<std::shared_ptr<void>()> alive;
    std::function<Time()> now;
    // Returns the bytes that the run sent and received since the last call.
    std::function<RunState::Traffic()> traffic;
    std::function<void(const Result<MaskedSum>&)> on_summed;
    std::function<void(const RunEngine::CloseRound&, const std::optional<Error>&)> on_aggregated;
    // A track phase is durable; with metrics, also its round. `aggregated`: it contains its updates. `ends`:
    // the evaluation of the round ends the run.
    std::function<void(const RunEngine::CloseRound&, bool aggregated, bool ends,
                       const std::optional<RoundMetrics>&)>
        on_closed;
    // Writes the models of a round that run.keep_models keeps; called on the worker's thread.
    std::function<Result<void>(RoundNumber, const std::vector<FinalModel>&)> keep;
    std::function<void(const Event&)> on_event;
    std::function<void(const Error&)> on_failure;
  };
  explicit RunAggregate(Surroundings surroundings);

  TrackView view(TrackId track) const override { return state().view(track); }
  Result<void> start(const RunEngine::StartTrack& start) override;
  void retire(TrackId track) override { state().retire(track); }
  void fold(const RunEngine::Fold& fold) override;
  void folded_by_clients(const RunEngine::Fold&) override {}
  void count(const RunEngine::Count& zeros) override;
  void open_sum(std::vector<Range> cells, std::size_t task_sums) override;
  void fold_masked(const RunEngine::Fold& fold, std::vector<std::uint64_t> scalars) override;
  void sum_up(TaskId task, privacy::Unmasking unmasking) override;
  void close(const RunEngine::CloseRound& turn, const Made& made) override;

  // Returns whether a closed track phase is not durable yet.
  bool closing() const { return closing_ > 0; }
  // Ends the retries. Results are not reported any more.
  void stop();

 private:
  // A closed track phase that is not durable yet.
  struct Closing {
    RunEngine::CloseRound turn;
    RunState::Traffic traffic = {};
    std::vector<std::shared_ptr<protocol::StoredObject>> folded = {};  // removed when durable
    std::shared_ptr<protocol::StoredObject> summed = {};               // likewise: its secure sum
    std::optional<RunState::MadeByClients> made = {};
    bool closed = false;
    bool ends = false;  // the round's evaluation ends the run
    std::optional<Error> not_made = {};
    std::optional<RoundMetrics> metrics = {};  // if the phase ends the round
    std::optional<Checkpoint> checkpoint = {};
    std::vector<protocol::ObjectId> removals = {};
  };
  RunState& state() const { return *surroundings_.parts.state; }
  // Runs `work` on the worker's thread, then `done` on the io_context's, unless stopped.
  template <class T>
  void on_worker(std::function<Result<T>()> work, std::function<void(const Result<T>&)> done);
  // Folds `update` on the worker. `upload` holds the values; it is empty for an update of zeros.
  void fold(TrackId track, aggregation::Update update, run::StoredUpdate upload);
  void fail_unless(const Result<void>& folded);
  void go_on(const std::shared_ptr<Closing>& closing);
  // Runs on the worker's thread. Continues as far as disk space allows; call it again after kResource.
  Result<void> close_on_disk(Closing& closing);
  void closed(const std::shared_ptr<Closing>& closing, const Result<void>& outcome);
  void try_again();
  void durable(const std::shared_ptr<Closing>& closing);

  Surroundings surroundings_;
  DiskRetry retry_;
  std::vector<std::shared_ptr<Closing>> waiting_;  // for disk space, in order
  // Updates in a model that is not durable yet, and updates that an earlier process received in part.
  std::vector<std::shared_ptr<protocol::StoredObject>> folded_;
  std::vector<std::shared_ptr<protocol::StoredObject>> arriving_;
  std::shared_ptr<protocol::StoredObject> summed_;  // the sum of the phase that is closed next
  RemovedObjects removed_;                          // which a backup may still be copying
  std::size_t closing_ = 0;                         // track phases closed but not durable
  bool stopped_ = false;
};

}  // namespace fedge::server
