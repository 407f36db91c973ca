// Files of a coordinator's data directory, for the coordinator and other programs.
#pragma once

#include <filesystem>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/crypto/secret.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"
#include "server/store/run_store.h"

namespace fedge::server {

// Opens the coordinator's key, or creates it in a new directory; `fedge token create` uses it too.
// kNotFound: the key is missing although clients or tokens of this directory refer to it.
Result<SecretKey> open_coordinator_key(const std::filesystem::path& data_directory);
// Opens or creates noise.key, the root of the noise in runs with differential privacy.
Result<Secret> open_noise_key(const std::filesystem::path& data_directory);
// The address at which the last coordinator here listened.
Result<protocol::Address> last_address(const std::filesystem::path& data_directory);
// The addresses at which clients reach the coordinator: those of its configuration, or last_address().
Result<std::vector<protocol::Address>> client_addresses(const std::filesystem::path& data_directory);
// Stores the addresses for both, when the coordinator starts; `configured` may be empty.
Result<void> write_addresses(const std::filesystem::path& data_directory, const protocol::Address& listening,
                             const std::vector<protocol::Address>& configured);

// kNotFound, with what to do: nothing in this directory was written by a coordinator, or by a command that
// prepares it for one. A directory that cannot be looked into passes: whoever reads it says why.
Result<void> check_coordinator_data(const std::filesystem::path& data_directory);

// Directories of one run: its policy and chunks, and its results.
std::filesystem::path run_directory(const std::filesystem::path& data_directory, RunNumber run);
std::filesystem::path run_results(const std::filesystem::path& data_directory, RunNumber run);

}  // namespace fedge::server
