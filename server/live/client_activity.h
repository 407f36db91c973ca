// ClientActivity: what an operator sees of a client beyond its enrolment. Plain data; kept in fleet.db.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "server/access/calendar.h"
#include "server/store/run_store.h"

namespace fedge::server {

struct ClientActivity {
  // The last task that ended.
  struct Task {
    RunNumber run;
    RoundNumber round;
    std::string kind;     // "training", "evaluation" or "statistics"
    std::string outcome;  // a stage of RunWatch that ends a task
    UnixSeconds ended = 0;
    double training_seconds = 0;  // with the download of the model; 0: it made no offer
    double upload_seconds = 0;
    std::uint64_t bytes = 0;  // of the update
  };
  struct Failure {
    RunNumber run;
    RoundNumber round;
    std::string kind;  // a key of `failures`
    std::string reason;
    UnixSeconds at = 0;
  };

  ClientId client;
  UnixSeconds online_since = 0;  // 0: it is not connected; not kept
  UnixSeconds last_seen = 0;     // 0: never
  std::string address = {};      // IP address and port
  std::string software = {};     // "fedge-client 0.1.0"
  std::string platform = {};     // "Linux aarch64"; empty: a client of an older version
  std::string project = {};      // for which it did what follows; empty: not known yet
  std::uint64_t accepted = 0;    // tasks whose answer was accepted
  // Tasks that ended without: "lost", "late", and "failed" or "refused" with the code: "failed.resource".
  std::map<std::string, std::uint64_t> failures = {};
  std::uint64_t received = 0;  // bytes from the client, over all connections
  std::uint64_t sent = 0;
  std::string kept_key = {};  // the coordinator's next key that it has stored, as hex digits; empty: none
  std::string kept_by = {};   // the key of the device that has: another may have taken its place since
  std::optional<Task> last_task = {};
  std::optional<Failure> last_failure = {};
};

// Removes what the client did in a project.
void forget_tasks(ClientActivity& activity);

// One line of JSON for the file, and back. kCorrupt names what is wrong.
std::string encode_activity(const ClientActivity& activity);
Result<ClientActivity> parse_activity(ClientId client, const std::string& text);

}  // namespace fedge::server
