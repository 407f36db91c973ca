#include "client/tokenizer_files.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "protocol/limits.h"

namespace fedge::client {
namespace {

namespace fs = std::filesystem;

fs::path tokenizers_of(const fs::path& state_directory) { return state_directory / "tokenizers"; }

// Removes all but the files used last.
void drop_old(const fs::path& directory) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    files.emplace_back(entry.last_write_time(ignored), entry.path());
  std::ranges::sort(files, std::greater<>());
  for (std::size_t i = kTokenizersKept; i < files.size(); ++i) fs::remove(files[i].second, ignored);
}

}  // namespace

std::string tokenizer_hash(const config::Document& description) {
  const config::Table* table = &description.root;
  for (const char* name : {"data", "tokenizer"}) {
    const auto found = table->find(name);
    table = found == table->end() ? nullptr : std::get_if<config::Table>(&found->second.data);
    if (table == nullptr) return "";
  }
  const auto hash = table->find("table_hash");
  const auto* text = hash == table->end() ? nullptr : std::get_if<std::string>(&hash->second.data);
  return text == nullptr ? "" : *text;
}

std::string kept_tokenizer(const fs::path& state_directory, const std::string& hash) {
  if (!is_hex_digest(hash)) return "";
  const fs::path path = tokenizers_of(state_directory) / hash;
  const auto table = read_file(path, protocol::kMaxTokenizer);
  std::error_code ignored;
  if (table && to_hex(sha256(*table)) == hash) {
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    return *table;
  }
  fs::remove(path, ignored);
  return "";
}

Result<std::optional<std::string>> missing_tokenizer(const protocol::RunDescription& description,
                                                     const fs::path& state_directory) {
  FEDGE_TRY(document,
            config::parse_toml(description.task, "run " + description.name, config::PlaceStyle::kStored));
  std::string hash = tokenizer_hash(document);
  if (hash.empty() || !kept_tokenizer(state_directory, hash).empty()) return std::optional<std::string>();
  if (!is_hex_digest(hash))
    return invalid("run " + description.name + ": data.tokenizer.table_hash is not a SHA-256");
  return std::optional(std::move(hash));
}

Result<void> keep_tokenizer(const fs::path& state_directory, std::string_view table) {
  const fs::path directory = tokenizers_of(state_directory);
  FEDGE_TRY_VOID(make_directory(directory));
  FEDGE_TRY_VOID(write_file_atomic(directory / to_hex(sha256(table)), table));
  drop_old(directory);
  return {};
}

}  // namespace fedge::client
