// Files: whole-file reads and writes with errors that name the file and what the system said.
// A shell's tool: decision code never touches a disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fedge {

// The whole file as text; kNotFound if it is not there, kResource above max_bytes.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes);

// Replaces the file so that after a crash either the old or the new content is there, whole: writes
// beside it, syncs, renames, syncs the directory. A new file gets this mode.
Result<void> write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes,
                               unsigned mode = 0644);
Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view text,
                               unsigned mode = 0644);
// The pieces one after the other, so that a header and a large payload need not be joined in memory.
Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> pieces, unsigned mode = 0644);

// Makes the directory and its parents; an existing directory is fine, anything else there is an error.
Result<void> make_directory(const std::filesystem::path& path, unsigned mode = 0755);

// "cannot open /x/y: No such file or directory", with the code that fits the system's error number.
Error system_error(const std::string& what, const std::filesystem::path& path, int error_number);

// An exclusive lock on a directory, held until destruction; kUnavailable if another process has it.
class DirectoryLock {
 public:
  static Result<DirectoryLock> acquire(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace fedge
