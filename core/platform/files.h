// Files: whole-file reads and writes; errors name the file and the system's reason. For I/O adapters:
// decision code never accesses a disk.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.h"

namespace fedge {

// The whole file as a string. kNotFound if absent; kResource above max_bytes, without reading it; kInvalid if
// it is not a regular file (a device never ends, a pipe waits for its writer).
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes);

Result<std::string> read_standard_input(std::size_t max_bytes);

// Replaces the file atomically: after a crash either the old or the new content is complete. Writes a
// temporary file beside it, syncs, renames, syncs the directory. A new file gets this mode; a replaced file
// keeps its owner and mode. kRefused if this process may not set that owner.
Result<void> write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes,
                               unsigned mode = 0644);
Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view text,
                               unsigned mode = 0644);
// Writes the pieces in sequence, so that a header and a large payload need not be joined in memory.
Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> pieces, unsigned mode = 0644);
// Writes these bytes at this offset, which must not exceed the file's size (kCorrupt). After a crash, all or
// a part of them are in the file. A new file gets this mode.
Result<void> write_file_at(const std::filesystem::path& path, std::uint64_t offset,
                           std::span<const std::byte> bytes, unsigned mode = 0644);
// Removes temporary files that killed writers of this file left behind. No other process may be writing it.
void remove_unfinished(const std::filesystem::path& path);

// A regular file that any thread may read in pieces. Closed on destruction.
class ReadOnlyFile {
 public:
  static Result<ReadOnlyFile> open(const std::filesystem::path& path);
  ~ReadOnlyFile();
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile& operator=(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  // Fills `out` from this offset on; kCorrupt if the file is too short.
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  ReadOnlyFile(std::filesystem::path path, int fd, std::uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

// Creates the directory and its parents durably. An existing directory is success, another file an error.
Result<void> make_directory(const std::filesystem::path& path, unsigned mode = 0755);

// Makes earlier creations, renames and removals in the directory durable.
Result<void> sync_directory(const std::filesystem::path& directory);

// Directory of a user's downloaded data, $HOME/.local/share/fedge; kNotFound if HOME is not set.
Result<std::filesystem::path> user_data_directory();

// Raises this process's limit of open files to the system's maximum; login shells and service managers start
// it with a lower limit.
void raise_open_files_limit();

// Builds "cannot open /x/y: No such file or directory", with the code that fits the system's error number.
Error system_error(const std::string& what, const std::filesystem::path& path, int error_number);

// Serialises changes of a file between processes: waits for the lock and holds it until destruction. `path`
// is a separate lock file, because the file itself is replaced on each change.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);
  // Does not wait longer than this, nor after `stop`.
  FileLock(const std::filesystem::path& path, std::chrono::milliseconds patience,
           const std::stop_token& stop);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return fd_ >= 0; }  // else errno says why not

 private:
  int fd_;
};

// Distinguishes a file from a later file at the same path.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};
Result<FileIdentity> identity_of(const std::filesystem::path& path);

// Returns kRefused if the file belongs to a user other than the one that runs this program; success if it is
// absent.
Result<void> check_owner(const std::filesystem::path& path);

// Holds an exclusive lock on a directory until destruction; kUnavailable if another process has it.
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
