// The coordinator's data directory, as other programs may look into it.
#pragma once

#include <filesystem>

#include "core/crypto/ed25519.h"
#include "core/crypto/secret.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"
#include "server/store/run_store.h"

namespace fedge::server {

// What `fedge token create` and a running coordinator share: the node key in the data directory and
// the file with the address the coordinator was last seen listening on. kNotFound: the key is missing beside
// an enrolment book, whose clients would refuse another one.
Result<SecretKey> open_coordinator_key(const std::filesystem::path& data_directory);
// Where the noise of its private runs comes from: a key file of its own.
Result<Secret> open_noise_key(const std::filesystem::path& data_directory);
Result<protocol::Address> last_address(const std::filesystem::path& data_directory);

// What a run alone has there: its policy, its chunks, its results.
std::filesystem::path run_directory(const std::filesystem::path& data_directory, RunNumber run);
std::filesystem::path run_results(const std::filesystem::path& data_directory, RunNumber run);

}  // namespace fedge::server
