// KnownClients: which node key each of a coordinator's clients was first seen with, in this client's state
// directory. Nobody can later pass off a key of its own as that client's; who is first seen with a wrong one
// is not found out here (docs/THREATS.md). Not thread-safe; writes where it is told to.
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
  // An empty one if there is no file. kCorrupt, with the file's name, if it is damaged.
  static Result<KnownClients> read(const std::filesystem::path& state_directory);

  // kRefused if the client was seen with another key before. A client that was not is known from now on.
  Result<void> check_pinned_key(ClientId client, const PublicKey& key);
  // Never becomes less: nobody is forgotten.
  std::size_t size() const { return keys_.size(); }
  // In the place of what was written before; survives a power cut once it returns.
  Result<void> write(const std::filesystem::path& state_directory) const;

 private:
  std::map<ClientId, PublicKey> keys_;
};

}  // namespace fedge::client
