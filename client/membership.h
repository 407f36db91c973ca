// Membership: what a client remembers between runs: its node key and the coordinator it has joined.
// Two small files in its state directory, mode 0600, replaced atomically.
#pragma once

#include <filesystem>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::client {

struct Membership {
  std::vector<protocol::Address> coordinators;  // addresses to try, in order
  PublicKey coordinator_key;                    // pinned
  ClientId client;                              // the number the coordinator gave us
};

// kNotFound, with what to do, if the client has not joined yet.
Result<Membership> read_membership(const std::filesystem::path& state_directory);
Result<void> write_membership(const std::filesystem::path& state_directory, const Membership& membership);

// The node's key, made on first use; makes the directory (mode 0700) if it is not there.
Result<SecretKey> open_node_key(const std::filesystem::path& state_directory);
// Where the noise comes from that the client adds to its updates: a key file of its own.
Result<Secret> open_noise_key(const std::filesystem::path& state_directory);

}  // namespace fedge::client
