// Coordinator::Impl: the state that admission and the runs share. Private to coordinator/.
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
#include "server/contact/contact_keeper.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/detail/disk_retry.h"
#include "server/coordinator/detail/run_host.h"
#include "server/coordinator/detail/run_queue.h"
#include "server/coordinator/gatekeeper.h"
#include "server/coordinator/live_keeper.h"
#include "server/coordinator/peers.h"

namespace fedge::server {

// Links of one client that replace each other within a minute; so many indicate a copied key rather than a
// bad network.
inline constexpr std::size_t kClonedAfter = 5;

class Coordinator::Impl : public std::enable_shared_from_this<Coordinator::Impl> {
 public:
  Impl(boost::asio::io_context& io, CoordinatorOptions options, RunCallbacks callbacks, DirectoryLock lock)
      : lock_(std::move(lock)),
        io_(io),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        gate_(
            io, options_.data_directory,
            {.software = options_.software,
             .rates = options_.joining,
             .arrivals = options_.arrivals,
             .now = [this] { return Time(std::chrono::steady_clock::now() - started_); },
             .runs = [this] { return open_runs(); },
             .is_current = [this](const protocol::Link& link) { return link.own_key() == contact_.key(); }}),
        seeder_(std::make_unique<SteadyClock>(io), options_.upload_limit,
                {.peers = peers_,
                 .seed = random_u64(),
                 .on_misbehaved = [this](ClientId client,
                                         const std::string& reason) { misbehaved(client, reason); }}),
        unfinished_(io),
        announce_timer_(io),
        contact_(options_.data_directory, options_.addresses,
                 {.on_changed =
                      [this] {
                        for (const ClientId client : informed_) tell(client);
                      },
                  .on_rotated = [this](SecretKey key) { return take_key(std::move(key)); },
                  .report = [this](const Event& event) { report(event); },
                  .on_told = [this](const std::optional<PublicKey>& next) { live()->set_told_key(next); }}),
        keeper_(std::make_shared<LiveKeeper>(io, options_.data_directory, peers_,
                                             [this](const Event& event) { report(event); })) {}

  void open_contact(const PublicKey& key) {
    contact_.open(key);
    const auto look = protocol::weakly(this, [this] {
      if (!finished_) contact_.look();
    });
    live()->on_keys_changed([&io = io_, look] { protocol::post(io, look); });
  }
  Result<void> open_queue();
  Result<void> listen(std::shared_ptr<protocol::TlsIdentity> identity);
  // Announces the coordinator with this key in the directory, if there is one.
  Result<void> enter_directory(SecretKey key);
  void open_traces(const PublicKey& key);
  Result<RunRecord> submit(const run::RunConfig& run);
  void start();
  void stop(const std::string& reason);
  void shut_down();
  Activity activity() const;
  Result<std::size_t> enrolled() { return gate_.enrolled(); }
  Result<void> check();
  const std::vector<RunRecord>& runs() const { return runs_; }
  const std::shared_ptr<Live>& live() const { return keeper_->live(); }
  std::optional<TraceCounts> traces() const {
    return exporter_ ? std::optional(exporter_->counts()) : std::nullopt;
  }
  dht::NetworkDirectory* directory() const { return directory_ ? &directory_->directory() : nullptr; }
  protocol::Address address() const { return listener_->local_address(); }

  std::optional<Error> failure_;

 private:
  // ---- clients ----
  void admit(ClientId client, std::shared_ptr<protocol::Link> link, const protocol::Hello& hello);
  void received(ClientId client, const protocol::Message& message);
  // Tells the client that it sent an illegal message and disconnects it.
  void misbehaved(ClientId client, const std::string& sent);
  // Counts that a new link replaced the client's old one. Two devices with one key replace each other again
  // and again.
  void replaced(ClientId client, const std::string& from, const std::string& to);
  // Sends the contact to a client that understands it.
  void tell(ClientId client) {
    live()->fleet.tells_key(client, contact_.contact().next_key);
    if (const auto link = peers_.find(client)) link->send(contact_.contact());
  }
  // Serves clients with this key from now on, and lets all connect again.
  Result<void> take_key(SecretKey key);
  // Appends to the audit log, on another thread.
  void record(const AuditEvent& event);
  // Closes the audit log's file if it has become too large, on another thread.
  void rotate_audit_log();
  void departed(ClientId client, const protocol::Link* link, bool for_good = false);
  // Passes a message to the run that it refers to.
  void pass_on(ClientId client, RunId run, const protocol::Message& message);
  // Returns the runs that have begun and not ended, ascending.
  std::vector<RunId> open_runs() const;

  // ---- runs ----
  // Opens and updates runs according to their status in the store.
  void arrange();
  // Pauses the runs that have waited for clients for too long.
  void end_waits();
  void apply_run_status(const RunRecord& run, const std::shared_ptr<RunHost>& host);
  void take_up(const RunRecord& run);
  void open(const RunRecord& run);
  void opened(const RunRecord& run, Result<RunParts> parts);
  Result<void> lead(RunParts parts);
  RunHost::Callbacks callbacks_of(const RunRecord& run);
  // What gives the run's rounds to the exporter of traces, if there is one.
  WatchRecords records_of(const RunParts& parts) const;
  void not_opened(const RunRecord& run, const Error& error);
  void wait_for_room(const RunRecord& run, const Error& full);
  // Destroys the host of a run that ended or paused.
  void let_go_of(const RunRecord& run, RunStatus status, const std::string& reason);

  // ---- the directory ----
  Result<std::vector<protocol::Address>> addresses_to_announce() const;
  void announce();
  void announce_runs();
  void leave_directory();

  void fail(const Error& error);
  // Stops serving clients. Nothing new begins after this returns.
  void close_doors(const std::string& reason);
  // Tells all connected clients to reconnect later, at times spread over a window.
  void say_goodbye(const std::string& reason);
  void let_go();
  void report(const Event& event) {
    if (keeper_) keeper_->live()->publish(event);
    callbacks_.on_event(event);
  }

  DirectoryLock lock_;
  boost::asio::io_context& io_;
  CoordinatorOptions options_;
  RunCallbacks callbacks_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Peers peers_;
  RateLimiter replacements_{kClonedAfter, std::chrono::minutes(1)};  // of links, per client
  std::set<ClientId> cloned_;                                        // clients whose cloned key was recorded
  Gatekeeper gate_;
  Seeder seeder_;
  // Keeps the io_context running while only other threads have something to do.
  protocol::Unfinished unfinished_;
  std::unique_ptr<protocol::Listener> listener_;
  std::shared_ptr<RunQueue> queue_;
  std::vector<RunRecord> runs_;  // last list from the queue
  std::map<RunId, std::shared_ptr<RunHost>> hosts_;
  std::map<RunNumber, bool> opening_;       // value: whether the run had begun
  std::set<RunNumber> waited_out_;          // paused because they waited for too long
  std::set<RunNumber> given_up_;            // could not be opened; no retry was requested
  std::map<RunNumber, DiskRetry> retries_;  // of runs that could not be opened for lack of disk space
  std::unique_ptr<dht::DirectoryNode> directory_;
  std::optional<Announcer> announcer_;
  protocol::Timer announce_timer_;
  ContactKeeper contact_;
  std::set<ClientId> informed_;  // connected clients that understand Contact
  std::shared_ptr<LiveKeeper> keeper_;
  std::shared_ptr<TraceExporter> exporter_;  // null without traces
  protocol::Worker opener_;                  // replays journals
  std::string unreadable_;                   // last reported error of reading the list of runs
  std::size_t departures_ = 0;               // since return_freed_memory()
  bool rotating_ = false;                    // rotate_audit_log() is at work
  bool finished_ = false;
};

}  // namespace fedge::server
