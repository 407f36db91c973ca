// Daemon: the client program around ClientEngine. One thread runs the io_context: link, timers and
// the engine; one worker thread prepares data and trains, so that the link stays alive meanwhile.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "client/client_engine.h"
#include "client/membership.h"
#include "client/swarm/swarm.h"
#include "client/trainers/conversation.h"
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
  double capability = 1;                           // share of a model that this device can train, in (0, 1]
  std::size_t cache_bytes = std::size_t{1} << 30;  // of models and updates kept in the state directory
  learn::DataDirectories data_directories;
  std::set<protocol::StatusField> withheld;  // what is not said of this device, whoever asks
  // To find the coordinator when it has moved, and to publish records where runs want that. With a file of
  // known nodes in the state directory.
  std::optional<dht::NodeSettings> directory;
  SwarmOptions swarm;  // exchanging models with other clients, in runs that do
  // What it asks of a run's secure aggregation, whatever the run says.
  struct SecureTerms {
    bool required = false;  // no part in runs without
    // Hold for every session in which the run asks for less. The graph of masks may be sparse among any
    // number of members that it is secure for.
    privacy::SecureRules rules = {.complete_below = 0, .min_survivors = 0};
  };
  SecureTerms secure;
  std::optional<double> max_epsilon;    // of its updates in all runs together; no part in runs that tell more
  double max_delta = 1e-5;              // the delta that max_epsilon and require_noise are for
  std::optional<double> require_noise;  // likewise, with the noise of other clients
  std::optional<std::uint32_t> max_updates_per_day;  // in all runs together
  bool stop_after_run = false;                       // end with the run instead of waiting for the next
  std::optional<TrainerOptions> trainer;  // the user's program trains; its on_event is the daemon's
  std::function<void(const Event&)> on_event;
};

class Daemon {
 public:
  // Reads key and membership; an error says what is missing.
  static Result<std::unique_ptr<Daemon>> create(boost::asio::io_context& io, DaemonOptions options);
  ~Daemon();

  // Called once when the daemon has ended, whatever the reason.
  void on_finished(std::function<void()> finished);
  // Connects and works until stop(); run io.run() afterwards. One whose key the coordinator has revoked tries
  // nothing more and waits for stop(), unless it was to end with the run.
  void start();
  // Leaves the coordinator and lets the io_context run out of work.
  void stop();
  // Why the daemon ended, if it failed.
  const std::optional<Error>& failure() const;

 private:
  class Impl;
  explicit Daemon(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// What a device begins with: a join token, or nothing but its key, if the coordinator's operator has enrolled
// that already (`fedge client add`).
struct JoinOrder {
  std::filesystem::path state_directory;
  std::string software;
  std::optional<protocol::JoinToken> token;
  std::optional<dht::NodeSettings> directory;  // where to look for a coordinator that no address is known of
  std::string run_name;                        // without a token: one that the coordinator announces
  std::optional<PublicKey> coordinator;        // without a token: the only one to be trusted
};

// Becomes a client and writes the membership: `fedge-client join`. Runs `io` until done.
struct Joined {
  Membership membership;
  bool pending = false;  // an operator has yet to approve; until then the daemon is not let in
};
Result<Joined> join(boost::asio::io_context& io, const JoinOrder& order);

}  // namespace fedge::client
