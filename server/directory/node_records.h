// NodeRecords: what a run's clients say about themselves, as their coordinator hears of it: over the clients'
// own connections, or from the directory, where each client's record lies under its key. One thread; pure but
// for what the directory does.
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
    std::size_t clients = 0;  // 0 to this less 1 are the run's
    Duration every{};         // between two records of a client; one over a connection lasts three times that
    dht::Directory* directory = nullptr;  // where records come from; null: connections. Outlives this
  };

  // `on_record` is called with each record that is later than the client's last.
  NodeRecords(const Options& options, OnRecord on_record);

  bool in_directory() const { return options_.directory != nullptr; }
  // Over the authenticated client's connection. kUnsupported: a node record of another version, or this run's
  // come from the directory. kInvalid: none at all, of a client that is none of the run's, or with another
  // round or sequence than its message. kStale: no later one than the last, unless that has expired.
  Result<void> received(ClientId client, const protocol::PublishRecord& message, Time now);
  // With a directory: from now on what lies there under this key is the client's. Again with another key is
  // instead of the former. kInvalid: none of the run's clients; kResource: the directory watches no more
  // keys.
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
  std::map<ClientId, Last> last_;  // over connections
  std::map<ClientId, Followed> followed_;
};

}  // namespace fedge::server
