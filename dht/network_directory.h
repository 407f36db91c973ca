// NetworkDirectory: the directory in the hands of all its nodes: a Kademlia DHT over UDP (OpenDHT, in a
// network of Fedge's own). Every participant is a node: it keeps a part of the records for others, for at
// most ten minutes after they were last put. Of records a node keeps for others what it would take for
// itself, so that those which are forged or expired do not spread through honest nodes. Values of other types
// than Fedge's OpenDHT keeps as well, up to 64 KiB each and 16 MiB; readers leave them out. OpenDHT runs
// two threads of its own; the directory's own calls and callbacks are all on the owner's thread. Cost: 1 to 3
// ms of latency on loopback, 0.5 to 2 MB of memory a node (bench/dht).
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

// "fedg": keeps nodes of other networks out of the tables.
inline constexpr std::uint32_t kNetwork = 0x66656467;

struct NetworkOptions {
  protocol::Address listen;  // an IP address; UDP port 0 picks a free one
  std::vector<protocol::Address>
      bootstrap;  // names or IP addresses, asked until one of them answers; without any it is the first node
  std::filesystem::path known_nodes;  // kept there when it ends, asked again next time; empty: nowhere
  bool fixed = false;                 // has an address of its own, and stays
  RemoteOptions limits;
  std::function<Time()> now;                        // the calendar; called on other threads
  std::function<void(std::function<void()>)> post;  // runs it on the owner's thread; called on other threads
  // For bootstrap nodes that are given by name: calls `found` once, on the owner's thread, with their IP
  // addresses; none if it has none.
  using Resolved = std::function<void(const std::vector<protocol::Address>&)>;
  std::function<void(const protocol::Address&, Resolved found)> resolve;
};

struct NetworkStatus {
  std::size_t good_nodes = 0;      // that have answered lately
  std::size_t dubious_nodes = 0;   // known, that have not
  std::size_t stored_records = 0;  // for others and itself
  std::size_t stored_bytes = 0;
  std::uint64_t sent_messages = 0;  // requests to other nodes
  std::uint64_t received_messages = 0;
  std::uint64_t refused_stores = 0;           // records that it was asked to keep, and did not
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

// kUnavailable: the address cannot be listened at. kUnsupported: this program was built without OpenDHT.
// kInvalid: no IP address.
Result<std::unique_ptr<NetworkDirectory>> open_network_directory(const NetworkOptions& options);

}  // namespace fedge::dht
