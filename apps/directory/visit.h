// Visit: a node of the directory for the duration of a command: enters, waits for an answer, looks up or
// publishes, and leaves. Blocks, with a time limit for each step.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "core/result.h"
#include "dht/node/directory_node.h"

namespace fedge::apps {

class Visit {
 public:
  // Enters; does not wait for an answer.
  static Result<std::unique_ptr<Visit>> begin(const dht::NodeSettings& settings);

  dht::NetworkDirectory& directory() { return node_->directory(); }
  // Waits until a node has answered. kUnavailable: none has within this time.
  Result<void> wait_for_contact(Duration patience);
  // kUnavailable: no node answers.
  Result<std::vector<dht::Record>> lookup(const dht::Key& key, Duration patience);
  Result<void> publish(const dht::Record& record, Duration patience);

 private:
  explicit Visit(std::unique_ptr<boost::asio::io_context> io) : io_(std::move(io)) {}
  // Whether the condition became true in time.
  bool run_until(const std::function<bool()>& condition, Duration patience);

  std::unique_ptr<boost::asio::io_context> io_;
  std::unique_ptr<dht::DirectoryNode> node_;
};

}  // namespace fedge::apps
