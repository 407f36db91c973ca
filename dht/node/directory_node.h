// DirectoryNode: a NetworkDirectory on an io_context: its callbacks come there, and the calendar is told to
// it every quarter of a second. One thread, the io_context's, which has work until this is destroyed.
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
  std::vector<protocol::Address> bootstrap;  // of nodes that are there already
  std::filesystem::path known_nodes;         // file of the nodes it knew; empty: none
  bool fixed = false;                        // it has an address of its own, and stays
  RemoteOptions limits = {};
};

class DirectoryNode {
 public:
  // Errors as open_network_directory()'s.
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

// Numbers for records, each larger than those before: microseconds since 1970, or one more than the last.
// They are larger than those of a process before this one as well, unless the calendar has been put back
// meanwhile: then what that one published counts until it ends, or until in_time() forgets it.
class SequenceNumbers {
 public:
  std::uint64_t next(Time calendar);

 private:
  std::uint64_t last_ = 0;
};

}  // namespace fedge::dht
