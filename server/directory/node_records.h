// NodeDirectory: the records of a run's clients, as its coordinator keeps and watches them: what comes in
// over clients' links is published, what is published is told on. Selection knows of clients' records through
// the directory alone, so that another directory can take its place.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "core/ids.h"
#include "core/node_record.h"
#include "core/result.h"
#include "core/time.h"
#include "dht/directory.h"
#include "protocol/messages.h"

namespace fedge::server {

class NodeDirectory {
 public:
  using OnRecord = std::function<void(ClientId, const NodeRecord&)>;
  // Watches the records of clients 0 .. clients - 1 in a directory in memory; they last this long.
  // `on_record` is called within publish().
  static Result<NodeDirectory> open(std::size_t clients, Duration lifetime, OnRecord on_record);

  // From the authenticated client; of its records the later one by round, then sequence, is kept.
  // kUnsupported: a node record of another version. kInvalid: none at all, of a client that is none of the
  // run's, or with another round or sequence than its message. kStale: no later one than is there. Never
  // kResource: there is room for a record of each client.
  Result<void> publish(ClientId client, const protocol::PublishRecord& message, Time now);

 private:
  NodeDirectory(std::unique_ptr<dht::Directory> directory, std::size_t clients, Duration lifetime)
      : directory_(std::move(directory)), clients_(clients), lifetime_(lifetime) {}

  std::unique_ptr<dht::Directory> directory_;
  dht::Subscription subscription_;
  std::size_t clients_;
  Duration lifetime_;
};

}  // namespace fedge::server
