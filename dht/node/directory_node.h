// DirectoryNode: a NetworkDirectory on an io_context, which runs its callbacks and advances its time every
// quarter of a second. Use it on the io_context's thread, which has work until this is destroyed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dht/network_directory.h"

namespace boost::asio {
class io_context;
}

namespace fedge::dht {

struct NodeSettings {
  protocol::Address listen{"0.0.0.0", 0};    // UDP
  std::vector<protocol::Address> bootstrap;  // existing nodes
  std::filesystem::path known_nodes;         // file of nodes known before; empty: none
  bool fixed = false;                        // it has a fixed address and stays online
  RemoteOptions limits = {};
};

class DirectoryNode {
 public:
  // Errors as for open_network_directory().
  static Result<std::unique_ptr<DirectoryNode>> open(boost::asio::io_context& io,
                                                     const NodeSettings& settings);
  ~DirectoryNode();

  NetworkDirectory& directory() { return *directory_; }

 private:
  struct Timer;
  DirectoryNode(std::unique_ptr<NetworkDirectory> directory, std::shared_ptr<Timer> timer);
  static void tick(const std::shared_ptr<Timer>& timer);

  std::unique_ptr<NetworkDirectory> directory_;
  std::shared_ptr<Timer> timer_;
};

// Sequence numbers for records, strictly increasing: microseconds since 1970, or the last one plus 1. They
// also exceed those of an earlier process, unless the calendar has been set back since; then the earlier
// process's record counts until it expires, or until in_time() drops it.
class SequenceNumbers {
 public:
  std::uint64_t next(Time calendar);

 private:
  std::uint64_t last_ = 0;
};

}  // namespace fedge::dht
