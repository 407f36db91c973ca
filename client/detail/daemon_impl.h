// The client daemon's inside: what link, timers, engine and worker share. Not for users of the daemon.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <stop_token>
#include <utility>

#include "client/daemon.h"
#include "client/diagnosis/status_file.h"
#include "client/handshake.h"
#include "client/prepared_run.h"
#include "client/task_files.h"
#include "core/platform/files.h"
#include "protocol/session/endpoint.h"

namespace fedge::client {

class Daemon::Impl : public std::enable_shared_from_this<Daemon::Impl> {
 public:
  Impl(boost::asio::io_context& io, DaemonOptions options, DirectoryLock lock, Membership membership,
       std::shared_ptr<protocol::TlsIdentity> identity, std::unique_ptr<TaskFiles> files)
      : lock_(std::move(lock)),
        io_(io),
        options_(std::move(options)),
        membership_(std::move(membership)),
        identity_(std::move(identity)),
        files_(std::move(files)),
        engine_(options_.backoff),
        rng_(random_seed()),
        timer_(io),
        training_timer_(io),
        status_timer_(io),
        status_(options_.state_directory),
        unfinished_(io.get_executor()),
        worker_(1) {}

  void use_trainer_program();
  // Takes up what an earlier process was left with, and connects.
  void start();
  void step(const ClientEngine::Input& input);
  void shut_down() {
    timer_.cancel();
    training_timer_.cancel();
    status_timer_.cancel();
    task_stop_.request_stop();
    worker_.stop();
    if (trainer_) trainer_->shut_down();  // before the thread that started it ends
    worker_.join();
    // The worker may not have come to it.
    if (!engine_.holds_update()) files_->forget();
    // The callbacks of a link that is still open hold this object, which holds the link.
    if (const auto link = std::exchange(link_, nullptr)) link->set_callbacks({});
  }

  std::optional<Error> failure_;
  std::function<void()> finished_;

 private:
  void perform(const ClientEngine::Effect& effect);
  void connect();
  void use(std::shared_ptr<protocol::Link> link, const protocol::Welcome& welcome);
  void send(const protocol::Message& message);
  void prepare(const protocol::RunDescription& description);
  void fetch(const ClientEngine::FetchModel& fetch);
  void fetched(const ClientEngine::FetchModel& fetch, Result<TaskFiles::Download> download);
  void fetch_object(const std::shared_ptr<protocol::StoredObject>& object,
                    std::function<void(const Result<void>&)> done);
  struct TaskToTrain {
    protocol::TrainRequest request;
    std::stop_token stop;
    std::stop_token enough;
  };
  Result<TaskFiles::Update> work(PreparedRun& run, TaskFiles::Download download, const TaskToTrain& order);
  void train(const ClientEngine::Train& train);
  void publish(const ClientEngine::Publish& publish);
  void limit_training(const ClientEngine::Train& train, std::stop_source enough);
  void abandon();
  void finish(const std::optional<Error>& error);
  void report(const Event& event);
  void arm_timer();
  void show_status();
  Time now() const { return Time(std::chrono::steady_clock::now() - started_); }
  void disconnected(const Error& error, Duration retry_after = {}) {
    step(ClientEngine::Disconnected{error, retry_after});
  }

  DirectoryLock lock_;  // two daemons with one key would throw each other out
  boost::asio::io_context& io_;
  DaemonOptions options_;
  Membership membership_;
  std::shared_ptr<protocol::TlsIdentity> identity_;
  std::unique_ptr<TaskFiles> files_;  // the worker's, once it has begun
  ClientEngine engine_;
  Rng rng_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer training_timer_;
  boost::asio::steady_timer status_timer_;
  StatusFile status_;
  bool status_due_ = false;
  // Keeps the io_context running while only the worker has something to do.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> unfinished_;
  // Its jobs hold this object weakly: one that is never begun would otherwise keep it for ever.
  boost::asio::thread_pool worker_;
  std::shared_ptr<ExternalTrainer> trainer_;  // if the user's program trains; used by the worker
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::size_t next_address_ = 0;
  std::shared_ptr<protocol::Link> link_;
  std::shared_ptr<PreparedRun> run_;
  Duration round_trip_{};                           // of Hello and Welcome
  std::shared_ptr<protocol::StoredObject> update_;  // trained, kept until the verdict
  std::stop_source task_stop_;                      // of the task in hand
  TaskFiles::Download download_;                    // on its way, or waiting to be trained from
  std::optional<protocol::Manifest> fetching_;
  std::optional<protocol::Manifest> serving_;
};

}  // namespace fedge::client
