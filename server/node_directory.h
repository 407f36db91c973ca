// NodeDirectory: the records of a run's clients, as its coordinator keeps and watches them: what comes in
// over clients' links is published, what is published is told on. Selection knows of clients' records through
// the directory alone, so that another directory can take its place.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

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

  // From the authenticated client. kInvalid: no node record; kStale: an earlier one than is there.
  Result<void> publish(ClientId client, const protocol::PublishRecord& message, Time now);

 private:
  NodeDirectory(std::unique_ptr<dht::Directory> directory, Duration lifetime)
      : directory_(std::move(directory)), lifetime_(lifetime) {}

  std::unique_ptr<dht::Directory> directory_;
  dht::Subscription subscription_;
  Duration lifetime_;
};

}  // namespace fedge::server
