// The coordinator's inside: what the door and the runs share. Not for users of the coordinator.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/crypto/random.h"
#include "core/platform/files.h"
#include "protocol/session/link.h"
#include "protocol/session/loop.h"
#include "server/access/audit_entry.h"
#include "server/access/rate_limiter.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/detail/run_host.h"
#include "server/coordinator/detail/run_queue.h"
#include "server/coordinator/gatekeeper.h"
#include "server/coordinator/peers.h"

namespace fedge::server {

// So many links of one client that take each other's place within a minute are not a bad network's.
inline constexpr std::size_t kClonedAfter = 5;

class Coordinator::Impl : public std::enable_shared_from_this<Coordinator::Impl> {
 public:
  Impl(boost::asio::io_context& io, CoordinatorOptions options, RunCallbacks callbacks, DirectoryLock lock)
      : lock_(std::move(lock)),
        io_(io),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        gate_(io, options_.data_directory,
              {.software = options_.software,
               .rates = options_.joining,
               .arrivals = options_.arrivals,
               .now = [this] { return Time(std::chrono::steady_clock::now() - started_); },
               .runs = [this] { return open_runs(); }}),
        seeder_(io, options_.upload_limit,
                {.peers = peers_,
                 .seed = random_u64(),
                 .on_misbehaved = [this](ClientId client,
                                         const std::string& reason) { misbehaved(client, reason); }}),
        unfinished_(io),
        retry_timer_(io),
        announce_timer_(io) {}

  Result<void> open_queue();
  Result<void> listen(std::shared_ptr<protocol::TlsIdentity> identity);
  Result<void> enter_directory(SecretKey key);
  Result<RunRecord> submit(const run::RunConfig& run);
  void start();
  void stop(const std::string& reason);
  void shut_down();
  Activity activity() const;
  Result<std::size_t> enrolled() { return gate_.enrolled(); }
  Result<void> check();
  const std::vector<RunRecord>& runs() const { return runs_; }
  dht::NetworkDirectory* directory() const { return directory_ ? &directory_->directory() : nullptr; }
  protocol::Address address() const { return listener_->local_address(); }

  std::optional<Error> failure_;

 private:
  // ---- clients ----
  void admit(ClientId client, std::shared_ptr<protocol::Link> link, const std::string& listens);
  void received(ClientId client, const protocol::Message& message);
  // Sent what it should not have: it is told so and cut off.
  void misbehaved(ClientId client, const std::string& sent);
  // Its link has been replaced by another. Two devices with one key throw each other out again and again.
  void replaced(ClientId client, const std::string& from, const std::string& to);
  // Into the audit log, on another thread.
  void record(const AuditEvent& event);
  void departed(ClientId client, const protocol::Link* link, bool for_good = false);
  // Of the run that this message is about.
  void pass_on(ClientId client, RunId run, const protocol::Message& message);
  // Those that have begun and are not over, ascending.
  std::vector<RunId> open_runs() const;

  // ---- runs ----
  // Takes up and lets go of runs, as the store wants it.
  void arrange();
  void apply_run_status(const RunRecord& run, const std::shared_ptr<RunHost>& host);
  void take_up(const RunRecord& run);
  void open(const RunRecord& run);
  void opened(const RunRecord& run, Result<RunParts> parts);
  Result<void> lead(RunParts parts);
  RunHost::Callbacks callbacks_of(const RunRecord& run);
  void not_opened(const RunRecord& run, const Error& error);
  void wait_for_room(const RunRecord& run, const Error& full);
  // A host has nothing more to do.
  void let_go_of(const RunRecord& run, RunStatus status, const std::string& reason);

  // ---- the directory ----
  Result<std::vector<protocol::Address>> addresses_to_announce() const;
  void announce();
  void announce_runs();
  void leave_directory();

  void fail(const Error& error);
  // Nobody is served any more; when this returns, nothing new begins.
  void close_doors(const std::string& reason);
  // Tells everybody connected to come back, at moments that spread them.
  void say_goodbye(const std::string& reason);
  void let_go();
  void report(const Event& event) { callbacks_.on_event(event); }

  DirectoryLock lock_;
  boost::asio::io_context& io_;
  CoordinatorOptions options_;
  RunCallbacks callbacks_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Peers peers_;
  RateLimiter replacements_{kClonedAfter, std::chrono::minutes(1)};  // of links, by client
  std::set<ClientId> cloned_;                                        // that has been recorded
  Gatekeeper gate_;
  Seeder seeder_;
  // Keeps the io_context running while only other threads have something to do.
  protocol::Unfinished unfinished_;
  std::unique_ptr<protocol::Listener> listener_;
  std::shared_ptr<RunQueue> queue_;
  std::vector<RunRecord> runs_;  // as the queue told last
  std::map<RunId, std::shared_ptr<RunHost>> hosts_;
  std::map<RunNumber, bool> opening_;  // whether it had begun before
  std::set<RunNumber> given_up_;       // they could not be taken up, and nobody has said since to try again
  std::set<RunNumber> waiting_for_room_;  // that could not be taken up for want of it; has been reported
  protocol::Timer retry_timer_;
  std::unique_ptr<dht::DirectoryNode> directory_;
  std::optional<Announcer> announcer_;
  protocol::Timer announce_timer_;
  protocol::Worker opener_;     // steps through journals
  std::string unreadable_;      // why the list of runs could not be read, said once
  std::size_t departures_ = 0;  // since memory was given back
  bool finished_ = false;
};

}  // namespace fedge::server
