// The coordinator's data directory, as other programs may look into it.
#pragma once

#include <filesystem>

#include "core/crypto/ed25519.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::server {

// What `fedge token create` and a running coordinator share: the node key in the data directory and
// the file with the address the coordinator was last seen listening on.
Result<SecretKey> open_coordinator_key(const std::filesystem::path& data_directory);
Result<protocol::Address> last_address(const std::filesystem::path& data_directory);

}  // namespace fedge::server
