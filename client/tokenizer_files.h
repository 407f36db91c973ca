// Tokenizers that are too long for a run's description, on a device's disk: STATE/tokenizers/HASH. Blocks on
// the disk: the daemon's worker thread calls these functions.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/config/document.h"
#include "core/result.h"
#include "protocol/messages.h"

namespace fedge::client {

// Files that stay on the disk: those used last.
inline constexpr std::size_t kTokenizersKept = 4;

// data.tokenizer.table_hash of a run's description; empty if it has none.
std::string tokenizer_hash(const config::Document& description);
// The hash of the tokenizer that the run needs and this device does not have, in hexadecimal; nothing: it
// needs no other. kInvalid: the description cannot be read.
Result<std::optional<std::string>> missing_tokenizer(const protocol::RunDescription& description,
                                                     const std::filesystem::path& state_directory);
// Keeps a tokenizer. Returns once it survives a power cut.
Result<void> keep_tokenizer(const std::filesystem::path& state_directory, std::string_view table);
// The kept tokenizer with this hash, in hexadecimal. Empty if there is none, or if the hash is empty. A
// damaged file is removed.
std::string kept_tokenizer(const std::filesystem::path& state_directory, const std::string& hash);

}  // namespace fedge::client
