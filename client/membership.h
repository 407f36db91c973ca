// Membership: what a client remembers across restarts: its node key and the coordinator it has joined. Two
// small files in its state directory, mode 0600, replaced atomically.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::client {

struct Membership {
  std::vector<protocol::Address> coordinators;  // addresses to try, in order
  PublicKey coordinator_key;                    // pinned
  ClientId client;                              // assigned by the coordinator
  std::optional<PublicKey> next_key = {};       // that the coordinator has announced
  // The key with which the client joined, which stays the same when the coordinator's key is replaced: what
  // the client has once sent to this coordinator still counts. Nothing: coordinator_key.
  std::optional<PublicKey> first_key = {};

  protocol::PinnedKey pinned() const { return {coordinator_key, next_key}; }
  const PublicKey& identity() const { return first_key ? *first_key : coordinator_key; }
  // Whether this is the coordinator's key, or was when the client joined.
  bool is_of(const PublicKey& key) const { return key == coordinator_key || key == identity(); }
  // The coordinator has this key from now on, and no announced one.
  void take_key(const PublicKey& key);
};

// The shell command "PROGRAM --state-dir DIR", for messages.
std::string client_command(const std::filesystem::path& state_directory, const std::string& program);

// kNotFound if the client has not joined yet; the error says how to join with `program`.
Result<Membership> read_membership(const std::filesystem::path& state_directory,
                                   const std::string& program = "fedge-client");
// Also remembers which first key belongs to the coordinator's key, in a file that outlives the membership: a
// client that joins the same coordinator again knows it as the same.
Result<void> write_membership(const std::filesystem::path& state_directory, const Membership& membership);
// The first key of the coordinator that has this key now; nothing if it is not known to have had another.
Result<std::optional<PublicKey>> first_key_of(const std::filesystem::path& state_directory,
                                              const PublicKey& coordinator);

// The node's key, created on first use together with its directory (mode 0700).
Result<SecretKey> open_node_key(const std::filesystem::path& state_directory);
// The secret from which this client's noise is derived: a separate key file.
Result<Secret> open_noise_key(const std::filesystem::path& state_directory);

}  // namespace fedge::client
