// BackupManifest: manifest.json of a backup. It names every file with its size and SHA-256, and ends with its
// own hash, so that a changed byte in it is found too. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fedge::server {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kBackupData = "data";  // the folder of the data directory's files

struct BackupFile {
  std::string path;  // below the data directory
  std::uint64_t size = 0;
  std::string sha256;
  bool operator==(const BackupFile&) const = default;
};

struct BackupManifest {
  std::string version;   // of the program that made the backup, for example "0.1.0"
  std::string created;   // calendar_text()
  bool running = false;  // a coordinator used the data directory meanwhile
  std::uint64_t audit_entries = 0;
  std::string audit_head;
  std::vector<BackupFile> files = {};  // ascending by path
};

// Returns the text of manifest.json.
std::string encode_manifest(const BackupManifest& manifest);
// kCorrupt: anything but the output of encode_manifest(), or a path that a data directory cannot have.
// kUnsupported: a newer version has written it.
Result<BackupManifest> parse_manifest(std::string_view text, const std::string& version);
// Reads the manifest of this backup. kNotFound: it is not a backup.
Result<BackupManifest> read_manifest(const std::filesystem::path& backup, const std::string& version);

// Returns whether a backup may contain this path of a data directory: a known file, or one below runs/NUMBER.
// No path leaves the directory.
bool is_backup_path(std::string_view path);

}  // namespace fedge::server
