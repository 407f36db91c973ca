// Live: what a running coordinator shows of itself, shared by its thread and the admin API's threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/event.h"
#include "server/live/event_feed.h"
#include "server/live/fleet.h"
#include "server/live/run_watch.h"
#include "server/live/transfers.h"

namespace fedge::server {

class Live {
 public:
  Fleet fleet;
  EventFeed feed;
  // Also used by runs that end after this.
  const std::shared_ptr<Transfers> transfers = std::make_shared<Transfers>();

  // ---- on the coordinator's thread ----
  // A run is led from now on, or no longer.
  void open(RunNumber run, const std::string& project, std::shared_ptr<const RunWatch> watch);
  void close(RunNumber run);
  // Call it for each client in the book, and before any event about the client.
  void set_project(ClientId client, const std::string& project);
  // Empty if the client is in no book.
  std::string project_of(ClientId client) const;
  // Publishes an event of the log, for the project of its run or client. Events of severity debug stay out.
  void publish(const Event& event);
  // Publishes how far each run is, if that has changed.
  void publish_progress();
  // Publishes a round's metrics, a line of metrics.jsonl.
  void publish_round(RunNumber run, const std::string& metrics);

  // The next key that clients are told from now on.
  void set_told_key(const std::optional<PublicKey>& key) {
    const std::lock_guard lock(mutex_);
    told_key_ = key;
  }

  // ---- on any thread ----
  std::optional<PublicKey> told_key() const {
    const std::lock_guard lock(mutex_);
    return told_key_;
  }
  // Asks the coordinator's thread to look at its key files at once. `look` is called on any thread.
  void on_keys_changed(std::function<void()> look) { look_at_keys_ = std::move(look); }
  void keys_changed() const {
    if (look_at_keys_) look_at_keys_();
  }
  struct Membership {
    RunNumber run;
    std::string state;  // as RunWatch::standing() returns it
    std::string reason;
  };
  // Returns the runs of this project that the connected client takes part in, or has declined. A client that
  // has just moved to another project may still take part in runs of the former one.
  std::vector<Membership> memberships(ClientId client, const std::string& project) const;
  // The runs that have waited for clients for at least this long, and for how many of how many.
  struct LongWait {
    RunNumber run;
    std::size_t clients;
    std::size_t needed;
  };
  std::vector<LongWait> waiting_longer(Duration limit) const;
  // The runs that this process leads.
  std::vector<std::pair<RunNumber, std::shared_ptr<const RunWatch>>> led() const;
  // How late the coordinator's thread was at its last look, which comes every second.
  void note_lag(double seconds) { lag_ = seconds; }
  double lag() const { return lag_; }
  // Null unless this process leads the run.
  std::shared_ptr<const RunWatch> watch(RunNumber run) const;

 private:
  struct Led {
    std::string project;
    std::shared_ptr<const RunWatch> watch;
    std::uint64_t told = UINT64_MAX;  // version of the last published progress
  };
  std::optional<PublicKey> told_key_;
  std::function<void()> look_at_keys_;  // set before other threads have this
  std::atomic<double> lag_ = 0;
  mutable std::mutex mutex_;
  std::map<RunNumber, Led> runs_;
  std::map<ClientId, std::string> projects_;  // of all clients in the book
};

}  // namespace fedge::server
