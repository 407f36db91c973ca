// The coordinator's inside: what links, timers, engine and worker share. Not for users of the coordinator.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "protocol/session/link.h"
#include "server/access/message_allowance.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/coordinator_parts.h"
#include "server/coordinator/detail/journal_writer.h"
#include "server/coordinator/gatekeeper.h"
#include "server/coordinator/uploads.h"
#include "server/node_directory.h"
#include "server/policy_file.h"
#include "server/run_state.h"

namespace fedge::server {

class Coordinator::Impl : public std::enable_shared_from_this<Coordinator::Impl> {
 public:
  using Parts = CoordinatorParts;

  Impl(boost::asio::io_context& io, const CoordinatorOptions& options, Parts parts)
      : io_(io),
        options_(options),
        parts_(std::move(parts)),
        state_(*parts_.state),
        engine_(std::move(parts_.engine)),
        rng_(state_.config().seed),
        gate_(io, Enrolment(options.data_directory),
              {.software = options.software,
               .rates = options.joining,
               .arrivals = options.arrivals,
               .now = [this] { return now(); }}),
        allowance_(state_.config().status.every),
        timer_(io),
        unfinished_(io.get_executor()),
        worker_(1),
        uploads_(std::make_shared<Uploads>(io, worker_, *parts_.updates, state_)),
        journal_(std::make_shared<JournalWriter>(io, *parts_.store, parts_.run, parts_.recovered.entries)),
        policy_timer_(io),
        retry_timer_(io),
        folded_(std::move(parts_.recovered.folded)),
        arriving_(std::move(parts_.recovered.arriving)) {}

  // Before listen().
  Result<void> open_directory();
  // Before start(): what an operator has written down for this run holds.
  Result<void> take_policy();
  Result<void> listen(std::shared_ptr<protocol::TlsIdentity> identity);
  void start();
  void step(const RunEngine::Input& input) { step(input, nullptr); }
  void end_run(const std::string& reason);
  void stop(const std::string& reason);
  void shut_down();
  RunId run() const { return state_.config().id; }
  const std::vector<RoundMetrics>& history() const { return parts_.recovered.history; }
  Activity activity() const { return {peers_.size(), serving_.size()}; }

  std::unique_ptr<protocol::Listener> listener_;
  std::optional<Error> failure_;

 private:
  // A turn of a round on its way to being durable.
  struct Closing {
    RunEngine::CloseRound close;
    protocol::Traffic traffic;
    std::vector<std::shared_ptr<protocol::StoredObject>> folded;  // to be let go of then
    bool closed = false;
    bool waits_for_room = false;
    std::optional<Error> not_aggregated;
    std::optional<RoundMetrics> metrics;  // if it ends the round
    std::optional<Checkpoint> checkpoint;
    std::vector<protocol::ObjectId> removals;
  };

  // Gives the engine an input, and the journal. With a payload, what the engine wants done is done when both
  // are durable, and so is what later inputs make it want.
  void step(const RunEngine::Input& input, std::shared_ptr<protocol::StoredObject> payload);
  void carry_out(const std::vector<RunEngine::Effect>& effects);
  void became_durable(std::uint64_t sequence);
  void admit(ClientId client, std::shared_ptr<protocol::Link> link);
  void received(ClientId client, const protocol::Message& message);
  // Sent what it should not have: it is told so and cut off.
  void misbehaved(ClientId client, const std::string& sent);
  void published(ClientId client, const protocol::PublishRecord& record);
  // An update is here, or will not be.
  void uploaded(const RunEngine::Input& outcome);
  void answered(ClientId client, const protocol::RunAnswer& answer);
  void stop_serving(ClientId client, TaskId task);
  void departed(ClientId client, const protocol::Link* link);
  void perform(const RunEngine::Effect& effect);
  void assign(const RunEngine::Assign& work);
  void send(ClientId client, const protocol::Message& message);
  void fetch(const RunEngine::Fetch& fetch);
  void fold(const RunEngine::Fold& fold);
  // `plain` holds its values and is let go of then; null if there is nothing to let go of.
  void fold(TrackId track, aggregation::Update update, std::shared_ptr<protocol::StoredObject> plain);
  void start_track(const RunEngine::StartTrack& start);
  void close_round(const RunEngine::CloseRound& close);
  // On the worker thread: as far as there is room on the disk, to be called again after kResource.
  Result<void> go_on_closing(Closing& closing);
  void post_closing(const std::shared_ptr<Closing>& closing);
  void closed_round(const std::shared_ptr<Closing>& closing, const Result<void>& outcome);
  void committed(const std::shared_ptr<Closing>& closing);
  // Tells the engine what an operator has changed meanwhile.
  void read_policy();
  // Looks every second for what the command-line tool has done: to the policy, to the run.
  void watch();
  void look(const RunRecord& run);
  // The disk's or the system's fault: the run can be gone on with, once that is mended.
  void fail(const Error& error);
  // The run's last models are there.
  void finish();
  // Nobody is served any more; when this returns, nothing new begins.
  void close_doors(const std::string& reason);
  // Tells everybody connected to come back, at moments that spread them.
  void say_goodbye(const std::string& reason);
  void let_go();
  void arm_timer();
  void report(const Event& event) {
    if (options_.on_event) options_.on_event(event);
  }
  // The run's clock stood still while there was no coordinator.
  Time now() const { return parts_.recovered.time + (std::chrono::steady_clock::now() - started_); }
  protocol::Traffic traffic_since_last_round();

  boost::asio::io_context& io_;
  CoordinatorOptions options_;
  Parts parts_;
  RunState& state_;
  std::unique_ptr<RunEngine> engine_;
  Rng rng_;
  Gatekeeper gate_;
  MessageAllowance allowance_;
  boost::asio::steady_timer timer_;
  // Keeps the io_context running while only the worker has something to do.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> unfinished_;
  boost::asio::thread_pool worker_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::map<ClientId, std::shared_ptr<protocol::Link>> peers_;
  std::size_t departures_ = 0;  // since memory was given back
  struct Serving {
    TaskId task;
    std::vector<protocol::ObjectId> objects;
  };
  std::map<ClientId, Serving> serving_;  // what each may still fetch, for which task
  std::shared_ptr<Uploads> uploads_;
  std::shared_ptr<JournalWriter> journal_;
  struct Waiting {
    std::uint64_t sequence;  // 0: for those before it alone
    std::vector<RunEngine::Effect> effects;
  };
  std::deque<Waiting> waiting_;  // effects of what is not durable yet, in their order
  // How the policy differs, at the start, from what the engine knows.
  std::optional<aggregation::Policy> policy_change_;
  std::optional<PolicyFile> policy_;  // none in an asynchronous run, which has one model for all
  boost::asio::steady_timer policy_timer_;
  boost::asio::steady_timer retry_timer_;  // of a round that could not be closed for want of room
  // Updates as they were sent: in a model that is not durable yet; from before this process, half here.
  std::vector<std::shared_ptr<protocol::StoredObject>> folded_;
  std::vector<std::shared_ptr<protocol::StoredObject>> arriving_;
  std::string stopped_;                 // why the run is being ended, if it is
  std::optional<NodeDirectory> nodes_;  // in a run whose clients publish records
  protocol::Traffic departed_traffic_;  // of links that are gone
  protocol::Traffic counted_traffic_;   // already reported with a round
  bool finished_ = false;
};

}  // namespace fedge::server
