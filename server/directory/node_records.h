// NodeRecords receives the node records that a run's clients publish. They arrive over the clients'
// connections, or from the directory, where each client's record is stored under its key. Use it on one
// thread; its only side effects are those of the directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "core/ids.h"
#include "core/node_record.h"
#include "core/result.h"
#include "core/time.h"
#include "dht/directory.h"
#include "protocol/messages.h"

namespace fedge::server {

class NodeRecords {
 public:
  using OnRecord = std::function<void(ClientId, const NodeRecord&)>;
  struct Options {
    RunId run;
    std::size_t clients = 0;  // the run's clients are 0 to clients - 1
    Duration every{};         // record interval of a client; records over connections last three intervals
    dht::Directory* directory = nullptr;  // source of records; null: connections. Must outlive this object
  };

  // Calls `on_record` with each record that is later than the client's last.
  NodeRecords(const Options& options, OnRecord on_record);

  bool in_directory() const { return options_.directory != nullptr; }
  // Handles a record received over an authenticated client's connection. kUnsupported: another version of
  // node record, or this run takes records from the directory. kInvalid: not a record, not a client of the
  // run, or a round or sequence that differs from the message. kStale: not later than the client's last
  // record, unless that has expired.
  Result<void> received(ClientId client, const protocol::PublishRecord& message, Time now);
  // With a directory: treats records stored under `key` as this client's. A later call with another key
  // replaces the first. kInvalid: not a client of the run; kResource: the directory cannot watch more keys.
  Result<void> follow(ClientId client, const PublicKey& key);

 private:
  struct Last {
    std::pair<std::uint32_t, std::uint64_t> place;  // round, sequence
    Time expires{};
  };
  struct Followed {
    PublicKey key;
    dht::Subscription subscription;
  };

  Result<void> check(ClientId client) const;

  Options options_;
  OnRecord on_record_;
  std::map<ClientId, Last> last_;  // last record of each client, over connections
  std::map<ClientId, Followed> followed_;
};

}  // namespace fedge::server
