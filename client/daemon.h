// Daemon: the client program around ClientEngine. One thread runs the io_context: link, timers and the
// engine. One worker thread prepares data and trains, so that the link stays alive meanwhile.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "client/client_engine.h"
#include "client/energy/energy_meter.h"
#include "client/membership.h"
#include "client/streams/sensor.h"
#include "client/swarm/swarm.h"
#include "client/trainers/conversation.h"
#include "core/energy/power.h"
#include "core/event.h"
#include "core/result.h"
#include "dht/node/directory_node.h"
#include "learn/data/data_directories.h"
#include "privacy/secure_aggregation/session.h"
#include "protocol/join_token.h"
#include "protocol/status_spec.h"

namespace boost::asio {
class io_context;
}

namespace fedge::client {

struct DaemonOptions {
  std::filesystem::path state_directory;
  std::string software;  // "fedge-client 0.1.0", told to the coordinator
  BackoffRules backoff;
  double capability = 1;  // fraction of a model that this device can train, in (0, 1]
  std::size_t cache_bytes = std::size_t{1} << 30;  // of models and updates kept in the state directory
  std::shared_ptr<const DevicePower> power =
      {};  // the energy of its work, as its owner describes it; or null
  std::shared_ptr<const EnergyMeter> meter =
      {};  // measures the energy of training, for offers; null: nothing does
  learn::DataDirectories data_directories;
  // Sensors whose events are own data of this device; none of them has a name in data_directories.
  std::vector<SensorOptions> streams = {};
  std::set<protocol::StatusField> withheld;  // status fields that this device never publishes
  // The directory in which it looks up a coordinator that has moved and publishes records where runs want
  // that. Known nodes are kept in a file in the state directory.
  std::optional<dht::NodeSettings> directory;
  SwarmOptions swarm;  // for runs whose clients exchange models
  // Minimum terms of this device for secure aggregation; they hold whatever the run says.
  struct SecureTerms {
    bool required = false;  // refuse runs without secure aggregation
    // Lower limits for every session. complete_below = 0 allows a sparse mask graph for any number of
    // members for which that is secure.
    privacy::SecureRules rules = {.complete_below = 0, .min_survivors = 0};
  };
  SecureTerms secure;
  std::optional<double> max_epsilon;  // limit on all updates of all runs together; refuse runs that exceed it
  double max_delta = 1e-5;            // the delta that max_epsilon and require_noise are for
  std::optional<double> require_noise;  // as max_epsilon, but counts the noise of other clients as well
  std::optional<std::uint32_t> max_updates_per_day;  // over all runs
  bool evaluates = true;                             // evaluates models in runs that ask for it
  bool counts = true;                                // sends statistics of its data likewise
  // Takes part in runs in which the coordinator trains a part of the model, and so sees activations of
  // samples.
  bool splits = false;
  // Directory in which client processes of this user keep frozen matrices once; empty: each in memory of its
  // own.
  std::filesystem::path shared_bases = {};
  bool stop_after_run = false;            // end with the run instead of waiting for the next
  std::optional<TrainerOptions> trainer;  // train with the user's program; the daemon sets on_event
  std::function<void(const Event&)> on_event;
};

class Daemon {
 public:
  // Reads key and membership; an error says what is missing.
  static Result<std::unique_ptr<Daemon>> create(boost::asio::io_context& io, DaemonOptions options);
  ~Daemon();

  // Called once when the daemon has ended, whatever the reason.
  void on_finished(std::function<void()> finished);
  // Connects and works until stop(); call io.run() afterwards. After the coordinator has revoked its key
  // the daemon waits for stop(), unless stop_after_run is set.
  void start();
  // Disconnects and lets the io_context run out of work.
  void stop();
  // Why the daemon ended, if it failed.
  const std::optional<Error>& failure() const;

 private:
  class Impl;
  explicit Daemon(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// How a device joins: with a join token, or with only its key if an operator has already enrolled that
// (`fedge client add`).
struct JoinOrder {
  std::filesystem::path state_directory;
  std::string software;
  std::optional<protocol::JoinToken> token;
  std::optional<dht::NodeSettings> directory;  // where to look for a coordinator without a known address
  std::string run_name;                        // without a token: a run that the coordinator announces
  std::optional<PublicKey> coordinator;        // without a token: the only coordinator to trust
};

// Joins the coordinator and writes the membership: `fedge-client join`. Runs `io` until done.
struct Joined {
  Membership membership;
  bool pending = false;  // an operator must still approve; until then the daemon is not admitted
};
Result<Joined> join(boost::asio::io_context& io, const JoinOrder& order);

}  // namespace fedge::client
