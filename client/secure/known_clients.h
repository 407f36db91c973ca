// KnownClients: the node key with which each client of a coordinator was first seen, in this client's state
// directory. A client cannot later be impersonated with another key. A key that is wrong from the beginning
// is not detected here (docs/THREATS.md). Not thread-safe; write() may run on another thread, on a copy.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"

namespace fedge::client {

class KnownClients {
 public:
  // Empty if there is no file. kCorrupt, with the file's name, if it is damaged.
  static Result<KnownClients> read(const std::filesystem::path& state_directory);

  // kRefused if the client was first seen with another key. Adds a client that was not seen before.
  Result<void> check_pinned_key(ClientId client, const PublicKey& key);
  // Never decreases: no client is removed.
  std::size_t size() const { return keys_.size(); }
  // Replaces the file; survives a power cut once it returns.
  Result<void> write(const std::filesystem::path& state_directory) const;

 private:
  std::map<ClientId, PublicKey> keys_;
};

}  // namespace fedge::client
