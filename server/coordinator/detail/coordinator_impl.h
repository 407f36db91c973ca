// The coordinator's inside: what links, timers, engine and worker share. Not for users of the coordinator.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "protocol/session/link.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/coordinator_parts.h"
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
        gate_(Enrolment(options.data_directory), options.software, options.arrivals),
        timer_(io),
        unfinished_(io.get_executor()),
        worker_(1),
        uploads_(std::make_shared<Uploads>(io, worker_, *parts_.updates, state_)),
        policy_timer_(io) {}

  // Before listen().
  Result<void> open_directory();
  // Before listen(): what an operator has written down for this run holds.
  Result<void> take_policy();
  Result<void> listen(std::shared_ptr<protocol::TlsIdentity> identity);
  void step(const RunEngine::Input& input);
  void stop(const std::string& reason) { step(RunEngine::Stop{reason}); }
  void shut_down();

  std::unique_ptr<protocol::Listener> listener_;

 private:
  void admit(ClientId client, std::shared_ptr<protocol::Link> link);
  void received(ClientId client, const protocol::Message& message);
  void published(ClientId client, const protocol::PublishRecord& record);
  void answered(ClientId client, const protocol::RunAnswer& answer);
  void stop_serving(ClientId client, TaskId task);
  void departed(ClientId client, const protocol::Link* link);
  void perform(const RunEngine::Effect& effect);
  void assign(const RunEngine::Assign& work);
  void send(ClientId client, const protocol::Message& message);
  void fetch(const RunEngine::Fetch& fetch);
  void fold(const RunEngine::Fold& fold);
  // `object` holds its values, and is let go of then; null for an update that was not sent.
  void fold(TrackId track, aggregation::Update update, std::shared_ptr<protocol::StoredObject> object);
  void start_track(const RunEngine::StartTrack& start);
  void close_round(const RunEngine::CloseRound& close);
  // Tells the engine what an operator has changed meanwhile.
  void read_policy();
  void watch_policy();
  void fail(const Error& error);
  void finish();
  void arm_timer();
  void report(const Event& event) {
    if (options_.on_event) options_.on_event(event);
  }
  Time now() const { return Time(std::chrono::steady_clock::now() - started_); }
  protocol::Traffic traffic_since_last_round();

  boost::asio::io_context& io_;
  CoordinatorOptions options_;
  Parts parts_;
  RunState& state_;
  std::unique_ptr<RunEngine> engine_;
  Rng rng_;
  Gatekeeper gate_;
  boost::asio::steady_timer timer_;
  // Keeps the io_context running while only the worker has something to do.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> unfinished_;
  boost::asio::thread_pool worker_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::map<ClientId, std::shared_ptr<protocol::Link>> peers_;
  struct Serving {
    TaskId task;
    std::vector<protocol::ObjectId> objects;
  };
  std::map<ClientId, Serving> serving_;  // what each may still fetch, for which task
  std::shared_ptr<Uploads> uploads_;
  std::optional<PolicyFile> policy_;  // none in an asynchronous run, which has one model for all
  boost::asio::steady_timer policy_timer_;
  std::optional<NodeDirectory> nodes_;  // in a run whose clients publish records
  protocol::Traffic departed_traffic_;  // of links that are gone
  protocol::Traffic counted_traffic_;   // already reported with a round
  std::optional<Error> failure_;
  bool finished_ = false;
};

}  // namespace fedge::server
