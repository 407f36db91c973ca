// Files of backups: copied with their hashes and synced, listed without following symbolic links. Private to
// backup/. Any thread; the process holds at most one buffer of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/result.h"
#include "server/backup/backup_manifest.h"

namespace fedge::server {

// Copies the first `bytes` bytes to the new file `to`, mode 0600, and syncs it. Returns its size and hash;
// `path` is empty. kCorrupt: the file is shorter.
Result<BackupFile> copy_bytes(const ReadOnlyFile& from, std::uint64_t bytes, const std::filesystem::path& to);
// Copies the whole file, of the size that it has now.
Result<BackupFile> copy_whole(const std::filesystem::path& from, const std::filesystem::path& to);
// Reads the file and returns its size and hash; `path` is empty.
Result<BackupFile> hash_file(const std::filesystem::path& file);

// Creates the folder of this file and those above it, down from `root`, mode 0700.
Result<void> make_folders_of(const std::filesystem::path& root, const std::string& file);

// A file, or anything that is neither a file nor a directory.
struct ListedFile {
  std::string path;  // below the listed directory
  bool regular = false;
  bool link = false;
};
// Lists what is below the directory, by path; with each directory itself passed to `directories` first. A
// file that vanishes meanwhile is left out.
Result<std::vector<ListedFile>> list_files(
    const std::filesystem::path& directory,
    const std::function<Result<void>(const std::filesystem::path&)>& directories = {});

// Makes everything below the directory durable that is not yet: each file, and each directory's names.
Result<void> sync_tree(const std::filesystem::path& directory);

}  // namespace fedge::server
