// Live: what a running coordinator shows of itself, shared by its thread and the admin API's threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "server/live/event_feed.h"
#include "server/live/fleet.h"
#include "server/live/run_watch.h"

namespace fedge::server {

class Live {
 public:
  Fleet fleet;
  EventFeed feed;

  // ---- on the coordinator's thread ----
  // A run is led from now on, or no longer.
  void open(RunNumber run, const std::string& project, std::shared_ptr<const RunWatch> watch);
  void close(RunNumber run);
  void set_project(ClientId client, const std::string& project);
  // Publishes an event of the log, for the project of its run or client. Events of severity debug stay out.
  void publish(const Event& event);
  // Publishes how far each run is, if that has changed.
  void publish_progress();
  // Publishes a round's metrics, a line of metrics.jsonl.
  void publish_round(RunNumber run, const std::string& metrics);

  // ---- on any thread ----
  struct Membership {
    RunNumber run;
    std::string state;  // as RunWatch::standing() returns it
    std::string reason;
  };
  // Returns the runs that the connected client takes part in, or has declined.
  std::vector<Membership> memberships(ClientId client) const;
  // Null unless this process leads the run.
  std::shared_ptr<const RunWatch> watch(RunNumber run) const;

 private:
  struct Led {
    std::string project;
    std::shared_ptr<const RunWatch> watch;
    std::uint64_t told = UINT64_MAX;  // version of the last published progress
  };
  mutable std::mutex mutex_;
  std::map<RunNumber, Led> runs_;
  std::map<ClientId, std::string> projects_;  // of clients that have connected to this process
};

}  // namespace fedge::server
