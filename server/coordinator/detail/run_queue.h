// RunQueue: the store's list of runs, as a coordinator sees it: what it has to lead, and what the
// command-line tool wants of it. Looks once a second, on a thread of its own, whether another process has
// changed something. Lives on the io_context's thread; owned by shared_ptr, since the other thread calls
// back. Private to coordinator/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "protocol/session/loop.h"
#include "server/store/run_store.h"

namespace fedge::server {

class RunQueue : public std::enable_shared_from_this<RunQueue> {
 public:
  using OnRuns = std::function<void(const Result<std::vector<RunRecord>>&)>;

  static Result<std::shared_ptr<RunQueue>> open(boost::asio::io_context& io,
                                                const std::filesystem::path& store);

  // ---- before watch(), on the caller's thread ----
  // The run with this document that has not ended, to be gone on with, or a new one. kRefused if there is
  // another that has not ended.
  Result<RunRecord> submit(const std::string& name, const std::string& document);
  Result<std::vector<RunRecord>> runs() { return store_->open_runs(); }
  Result<RunNumber> highest() { return store_->highest(); }

  // ---- from then on ----
  // Calls back with the runs that are not over now, and whenever something has changed.
  void watch(OnRuns on_runs);
  void look_now();
  // Begins to lead it, if it may be led; calls back with what it is then. runs are told first.
  void claim(RunNumber run, std::function<void(const Result<RunRecord>&)> claimed);
  void set_status(RunNumber run, RunStatus status, const std::string& reason);
  // No callback comes after this.
  void stop();
  // The same, and its thread has ended when it returns.
  void shut_down();

 private:
  RunQueue(boost::asio::io_context& io, std::unique_ptr<RunStore> store)
      : io_(io), store_(std::move(store)), timer_(io) {}
  void look(bool always);
  void arm();
  // On the disk's thread.
  void tell_runs();
  void tell(const Result<std::vector<RunRecord>>& runs);

  boost::asio::io_context& io_;
  std::unique_ptr<RunStore> store_;  // the disk's thread's, once watch() has been called
  OnRuns on_runs_;
  protocol::Worker disk_;
  protocol::Timer timer_;
  std::uint64_t foreign_changes_ = 0;  // on the disk's thread
  bool stopped_ = false;
};

}  // namespace fedge::server
