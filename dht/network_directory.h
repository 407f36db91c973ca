// NetworkDirectory: the directory distributed over all its nodes: a Kademlia DHT over UDP (OpenDHT, in a
// separate network). Every participant is a node and stores part of the records, each for at most ten
// minutes after its last put. A node stores only records that it would accept itself, so that honest nodes
// do not spread forged or expired ones. OpenDHT also stores values of other types, up to 64 KiB each and 16
// MiB in total; readers ignore them. OpenDHT has two threads; the directory's calls and callbacks run on
// the owner's thread. Cost: 1 to 3 ms of latency on loopback, 0.5 to 2 MB of memory for each node
// (bench/dht).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dht/remote_directory.h"
#include "protocol/session/endpoint.h"

namespace fedge::dht {

// "fedg": keeps nodes of other networks out of the routing tables.
inline constexpr std::uint32_t kNetwork = 0x66656467;

struct NetworkOptions {
  protocol::Address listen;  // an IP address; UDP port 0 picks a free one
  std::vector<protocol::Address>
      bootstrap;  // names or IP addresses, asked until one of them answers; without any it is the first node
  std::filesystem::path known_nodes;  // file written at the end, read at the next start; empty: none
  bool fixed = false;                 // has a fixed address and stays online
  RemoteOptions limits;
  std::function<Time()> now;                        // the calendar; called on other threads
  std::function<void(std::function<void()>)> post;  // runs it on the owner's thread; called on other threads
  // Resolves the name of a bootstrap node: calls `found` once, on the owner's thread, with its IP
  // addresses; empty if it has none.
  using Resolved = std::function<void(const std::vector<protocol::Address>&)>;
  std::function<void(const protocol::Address&, Resolved found)> resolve;
};

struct NetworkStatus {
  std::size_t good_nodes = 0;      // answered recently
  std::size_t dubious_nodes = 0;   // known, but have not answered recently
  std::size_t stored_records = 0;  // of this and other nodes
  std::size_t stored_bytes = 0;
  std::uint64_t sent_messages = 0;  // requests to other nodes
  std::uint64_t received_messages = 0;
  std::uint64_t refused_stores = 0;           // records that it refused to store
  std::vector<std::string> public_addresses;  // as other nodes see it
};

struct KnownNode {
  std::string id;       // hexadecimal
  std::string address;  // host:port
};

class NetworkDirectory : public RemoteDirectory {
 public:
  virtual std::uint16_t port() const = 0;  // UDP
  virtual NetworkStatus status() const = 0;
  virtual std::vector<KnownNode> known_nodes() const = 0;

 protected:
  using RemoteDirectory::RemoteDirectory;
};

// kUnavailable: cannot listen on the address. kUnsupported: this program was built without OpenDHT.
// kInvalid: not an IP address.
Result<std::unique_ptr<NetworkDirectory>> open_network_directory(const NetworkOptions& options);

}  // namespace fedge::dht
