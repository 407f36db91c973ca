// The owner of a device points it to another address of its coordinator, or to a key that the coordinator
// has without having announced it to this device: `fedge-client move`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/membership.h"

namespace boost::asio {
class io_context;
}

namespace fedge::client {

struct MoveOrder {
  std::filesystem::path state_directory;
  std::string program;                       // for messages
  std::string software;                      // sent to the coordinator
  std::vector<protocol::Address> addresses;  // 1 to 4; empty with a key: those that the client has
  std::optional<PublicKey> key;              // the coordinator's key; nothing: the one that the client trusts
  bool check = true;  // connect first, and change nothing unless the coordinator there knows this client
};

// Changes the membership, and returns the new one. Runs `io` until done. kUnavailable: a daemon runs in the
// directory. With `check`, also why the coordinator cannot be reached or does not know the client.
Result<Membership> move(boost::asio::io_context& io, const MoveOrder& order);

}  // namespace fedge::client
