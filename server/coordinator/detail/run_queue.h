// RunQueue gives the coordinator the store's list of runs: which ones to execute, and what the command-line
// tool requests. A separate thread checks every second whether another process changed the store. Use it on
// the io_context's thread. Owned by shared_ptr, because the other thread calls back. Private to
// coordinator/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol/session/loop.h"
#include "server/store/run_store.h"

namespace fedge::server {

class RunQueue : public std::enable_shared_from_this<RunQueue> {
 public:
  using OnRuns = std::function<void(const Result<std::vector<RunRecord>>&)>;
  // Called with a new run that has no number yet; an error prevents its insertion.
  using BeforeInsert = std::function<Result<void>(const RunRecord&)>;

  static Result<std::shared_ptr<RunQueue>> open(boost::asio::io_context& io,
                                                const std::filesystem::path& store);

  // ---- before watch(), on the caller's thread ----
  // Returns the unfinished run with this document and unpauses it, or submits a new run. kRefused if
  // another run has not ended.
  Result<RunRecord> submit(const std::string& name, const std::string& document,
                           const BeforeInsert& before_insert);
  Result<std::vector<RunRecord>> runs() { return store_->open_runs(); }
  Result<RunNumber> highest() { return store_->highest(); }

  // ---- from then on ----
  // Calls back with the open runs, now and after each change.
  void watch(OnRuns on_runs);
  void look_now();
  // Marks the run as running if that is allowed, then passes its record to `claimed`. Calls on_runs first.
  void claim(RunNumber run, std::function<void(const Result<RunRecord>&)> claimed);
  void set_status(RunNumber run, RunStatus status, const std::string& reason);
  // Asks for this state, as an operator does.
  void ask(RunNumber run, RunStatus wanted, const std::string& reason);
  // As RunStore::explain(), until the next call. Writes the reason again after claim() has cleared it, and
  // after an error.
  void explain(RunNumber run, const std::string& reason);
  // Stops the callbacks and removes the reasons of explain(): they hold only while this process executes the
  // runs.
  void stop();
  // Stops the callbacks and waits for the thread to end.
  void shut_down();

 private:
  RunQueue(boost::asio::io_context& io, std::unique_ptr<RunStore> store)
      : io_(io), store_(std::move(store)), timer_(io) {}
  void look(bool always);
  void arm();
  // Run on the disk's thread.
  void tell_runs();
  void write_reasons();
  void tell(const Result<std::vector<RunRecord>>& runs);

  boost::asio::io_context& io_;
  std::unique_ptr<RunStore> store_;  // only the disk's thread uses it after watch()
  OnRuns on_runs_;
  protocol::Worker disk_;
  protocol::Timer timer_;
  struct Reason {
    std::string text;
    bool written = false;
  };
  bool stopped_ = false;
  // On the disk's thread:
  std::uint64_t foreign_changes_ = 0;
  std::map<RunNumber, Reason> reasons_;  // of explain(), without empty ones that are written
};

}  // namespace fedge::server
